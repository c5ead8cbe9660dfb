import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RingletModule } from '../../src/core/module.js';
import { ModuleMemory } from '../../src/core/module_memory.js';

test('sizes and numbers of more than 32 bits never reach the module', () => {
  const asked: number[] = [];
  const module = {
    HEAPU8: new Uint8Array(64).fill(7),
    _ringlet_allocate: (bytes: number): number => {
      asked.push(bytes >>> 0);
      return 8;
    },
  };
  const memory = new ModuleMemory(module as unknown as RingletModule);
  assert.throws(() => memory.allocate(2 ** 32 + 16), /RangeError: the wasm module has no 4294967312 bytes of memory left/);
  assert.throws(() => memory.reserve(2 ** 32), RangeError);
  assert.throws(() => memory.putNumbers([1, 2 ** 32 + 4]), { name: 'InvalidArgument', message: /4294967300 rows or elements/ });
  assert.deepEqual(asked, []);
  assert.ok(module.HEAPU8.every((byte) => byte === 7));
  memory.putNumbers([1, 2 ** 32 - 1]);
  assert.deepEqual([...new Uint32Array(module.HEAPU8.buffer, 8, 2)], [1, 2 ** 32 - 1]);
});
