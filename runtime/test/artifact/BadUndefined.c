/* An image that calls what is not there: refused. */
void missing_function(void);
void toy_gradient(void *const *b, long begin, long end, void *workspace) { missing_function(); }
