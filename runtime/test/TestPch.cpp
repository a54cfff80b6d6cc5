// This translation unit is compiled to the precompiled header of the tests.
