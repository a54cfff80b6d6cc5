/* An image that calls an undefined function: refused. */
void missing_function(void);
void toy_gradient(void *const *b, long begin, long end, void *workspace) { missing_function(); }
