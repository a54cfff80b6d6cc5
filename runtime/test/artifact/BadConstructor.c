/* The loader must refuse this image, because it would run code when it is loaded. */
static volatile int ran;
__attribute__((constructor)) static void run(void) { ran = 1; }
int toy_gradient(void *const *b, long begin, long end, void *workspace) { return ran; }
