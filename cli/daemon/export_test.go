package daemon

// Nearest is nearest, for tests.
var Nearest = nearest
