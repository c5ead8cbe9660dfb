/** Where the wasm module comes from: an address, its bytes, or a compiled module. */
export type WasmSource = string | URL | BufferSource | WebAssembly.Module;
