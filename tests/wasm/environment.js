// Gives the environment of the process to the program, since Emscripten's own is empty.
Module['preRun'] = [() => Object.assign(ENV, process.env)];
