import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GradientCalls } from '../../src/core/gradient_calls.js';
import type { RingletModule } from '../../src/core/module.js';
import { ModuleMemory } from '../../src/core/module_memory.js';
import type { FsdpRequest } from '../../src/engine.js';

/** A module that numbers its objects and knows which it still has. */
class CountingModule {
  readonly objects = new Map<number, string>();
  readonly #made = (kind: string) => (): number => {
    const handle = ++this.#last;
    this.objects.set(handle, kind);
    return handle;
  };
  #last = 0;
  _ringlet_tree = this.#made('tree');
  readonly sizes: number[][] = [];
  _ringlet_fsdp = (...[, , size, , , , , least]: number[]): number => {
    this.sizes.push([size ?? NaN, least ?? NaN]);
    return this.#made('fsdp')();
  };
  _ringlet_average_gradients = (...call: number[]): number => {
    this.sizes.push([call[4] ?? NaN, call[9] ?? NaN]);
    return 0;
  };
  _ringlet_optimizer = this.#made('optimizer');
  _ringlet_tree_add = (): number => 0;
  _ringlet_optimizer_set_learning_rate = (): number => 0;
  _ringlet_fsdp_apply = (): number => 0;
  _ringlet_fsdp_norm = (): number => NaN;
  _ringlet_object_release = (handle: number): number => (this.objects.delete(handle) ? 0 : 1);

  get kinds(): string {
    return [...this.objects.values()].sort().join(' ');
  }
}

const memory = {
  put: () => 1,
  lend: (parts: unknown[], use: (...pointers: number[]) => unknown) => use(...parts.map(() => 1)),
  release: () => undefined,
} as unknown as ModuleMemory;

function requestOf(group: number, optimizer: number, feedback: boolean): FsdpRequest {
  return {
    group,
    dpGroup: undefined,
    stream: 0,
    gradients: [],
    parameters: [],
    optimizer: { id: optimizer, formula: 'SGD', learningRate: 0.1, numbers: [], stateDtype: undefined },
    communicationSize: 0,
    maxNorm: undefined,
    reduceDtype: { blocks: 'int8', feedback },
    shardWeights: undefined,
  };
}

test('what the module keeps for an optimizer or a group is released with it', () => {
  const module = new CountingModule();
  const calls = new GradientCalls(module as unknown as RingletModule, memory);
  const step = (group: number, optimizer: number, feedback: boolean): void => {
    const call = calls.fsdp(requestOf(group, optimizer, feedback));
    assert.equal(call.start(1), 0);
    call.finish(true);
  };
  for (const optimizer of [1, 2, 2, 11]) step(7, optimizer, true);
  for (const optimizer of [1, 2]) step(7, optimizer, false);
  assert.equal(module.kinds, 'fsdp fsdp fsdp fsdp optimizer optimizer optimizer');
  calls.forgetOptimizer(1);
  assert.equal(module.kinds, 'fsdp fsdp fsdp optimizer optimizer');
  calls.forgetOptimizer(1);
  step(11, 2, true);
  calls.forgetOptimizer(11);
  assert.equal(module.kinds, 'fsdp fsdp fsdp optimizer');
  calls.forget(7);
  assert.equal(module.kinds, 'fsdp optimizer');
  calls.forgetOptimizer(2);
  assert.equal(module.kinds, '');
});

test('sizes of more than 32 bits stay large on their way to the module', () => {
  const module = new CountingModule();
  const calls = new GradientCalls(module as unknown as RingletModule, memory);
  const [large, none] = [2 ** 33, -1];
  for (const size of [large, none]) {
    const reduceDtype = { blocks: 'int8', leastElements: Math.max(size, 0) } as const;
    calls.fsdp({ ...requestOf(1, 1, false), communicationSize: size, reduceDtype }).start(1);
    const average = { allReduceSize: size, communicationType: reduceDtype, weight: undefined };
    calls.average({ group: 1, stream: 0, leaves: [], ...average }).start(2);
  }
  const most = 2 ** 32 - 1;
  assert.deepEqual(module.sizes, [
    [most, most],
    [most, most],
    [none, 0],
    [none, 0],
  ]);
});

test('a tree that does not fit into the module leaves nothing in it', () => {
  const module = new CountingModule();
  const lent = new Set<number>();
  let last = 0;
  let left = 0;
  const heap = {
    HEAPU8: new Uint8Array(4096),
    _ringlet_allocate: (): number => {
      if (--left < 0) return 0;
      lent.add(++last);
      return last;
    },
    _ringlet_release: (pointer: number): void => void lent.delete(pointer),
  };
  const calls = new GradientCalls(module as unknown as RingletModule, new ModuleMemory(heap as unknown as RingletModule));
  const leaf = { name: 'w', dtype: 'f32', shape: [1], at: new Uint8Array(4) } as const;
  const request = { ...requestOf(7, 1, false), gradients: [leaf, leaf], parameters: [leaf], shardWeights: [1] };
  const step = (): number => {
    const call = calls.fsdp(request);
    try {
      return call.start(1);
    } finally {
      call.finish(false);
    }
  };
  for (let blocks = 0; ; ++blocks) {
    left = blocks;
    try {
      step();
      break;
    } catch (error) {
      assert.ok(error instanceof RangeError);
    }
    assert.equal(lent.size, 0, `${blocks} blocks`);
    assert.ok(!module.kinds.includes('tree'), module.kinds);
  }
  assert.equal(lent.size, 0);
  assert.equal(module.kinds, 'fsdp optimizer');
});
