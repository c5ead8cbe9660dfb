// The module that Emscripten builds from wasm/cpp; the build script sets its path.
declare module 'ringlet-module' {
  const makeModule: import('./core/local_engine.js').ModuleFactory;
  export default makeModule;
}
