#!/usr/bin/env node
// Measures the f32 sum in WebAssembly, in turns with a scalar loop in WebAssembly and with the native SSE4.1 kernel.
import { execFileSync } from 'node:child_process';

const [wasm = 'build/wasm/bin/sum_times.js', native = 'build/release/bin/sum_times', turns = '11'] = process.argv.slice(2);
if (wasm === '--help' || wasm === '-h') {
  console.log(`Usage: bench/wasm_bench.mjs [WASM_SUM_TIMES [NATIVE_SUM_TIMES [TURNS]]]

Runs sum_times of both builds in turns and prints medians, in picoseconds per element. Build them with
  cmake --preset wasm && cmake --build --preset wasm --target sum_times
  cmake --preset release && cmake --build --preset release --target sum_times`);
  process.exit(0);
}
const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];
const times = { wasm: [], loop: [], sse: [] };
for (let turn = 0; turn < Number(turns); ++turn) {
  const here = JSON.parse(execFileSync(process.execPath, [wasm, 'wasm'], { encoding: 'utf8' }));
  const there = JSON.parse(execFileSync(native, ['sse4.1'], { encoding: 'utf8' }));
  times.wasm.push(here.wasm);
  times.loop.push(here.loop);
  times.sse.push(there['sse4.1']);
}
const [kernel, loop, sse] = [times.wasm, times.loop, times.sse].map(median);
console.log(`wasm kernel ${kernel} ps/element, scalar wasm loop ${loop}, native SSE4.1 kernel ${sse}`);
console.log(
  `the kernel is ${(loop / kernel).toFixed(2)} times as fast as the loop, and takes ${(kernel / sse).toFixed(2)} times as long as SSE4.1`,
);
