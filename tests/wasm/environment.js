// Hands the process' environment to the program: Emscripten's own is empty.
Module['preRun'] = [() => Object.assign(ENV, process.env)];
