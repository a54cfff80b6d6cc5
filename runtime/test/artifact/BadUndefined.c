/* The loader must refuse this image, because it calls an undefined function. */
void missing_function(void);
void toy_gradient(void *const *b, long begin, long end, void *workspace) { missing_function(); }
