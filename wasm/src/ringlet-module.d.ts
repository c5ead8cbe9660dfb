// What Emscripten makes of wasm/cpp; the build says where it is.
declare module 'ringlet-module' {
  const makeModule: import('./core/local_engine.js').ModuleFactory;
  export default makeModule;
}
