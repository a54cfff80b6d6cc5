/* An image that would run code when it is loaded: refused. */
static volatile int ran;
__attribute__((constructor)) static void run(void) { ran = 1; }
int toy_gradient(void *const *b, long begin, long end, void *workspace) { return ran; }
