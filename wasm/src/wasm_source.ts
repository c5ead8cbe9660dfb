/**
 * Where the wasm module comes from: an address, its bytes, or a compiled `WebAssembly.Module`, whose own type would need TypeScript's `dom`
 * library.
 */
export type WasmSource = string | URL | ArrayBuffer | ArrayBufferView | object;
