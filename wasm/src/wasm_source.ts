/** Where the wasm module comes from: an address, its bytes, or the module itself, compiled. */
export type WasmSource = string | URL | BufferSource | WebAssembly.Module;
