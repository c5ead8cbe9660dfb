// A module as a rank beside native ones that run native_rank.cpp.
import assert from 'node:assert/strict';
import { token } from './natives.mjs';
import { Rank } from './rank.mjs';
import { blockFormats, canReduce, dtypes, f32, firstBlocks, i32, reduceOps, sizes, sum } from './tables.mjs';

function* numbers(rank, stage) {
  let state = Math.imul(0x9e3779b9, rank * 1_000 + stage + 1) | 1;
  for (;;) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    yield state | 0;
  }
}

export function makeBits(dtype, count, rank, stage) {
  const bytes = new Uint8Array(count * sizes[dtype]);
  const from = numbers(rank, stage);
  for (let i = 0; i < bytes.length; ++i) bytes[i] = (from.next().value >>> 8) & (dtype === 0 ? 1 : 255);
  return bytes;
}

function makeValues(count, rank, stage) {
  const from = numbers(rank, stage);
  // The value is rounded once to a float, then divided exactly, as native_rank.cpp does.
  return Float32Array.from({ length: count }, () => Math.fround(from.next().value) / 2 ** 31);
}

export function hash(bytes) {
  let value = 0x811c9dc5;
  for (const byte of bytes) value = Math.imul(value ^ byte, 0x01000193);
  return (value >>> 0).toString(16).padStart(8, '0');
}

/** A module as a guest, `module` being its path. It calls what native_rank.cpp calls, and keeps the lines that this program prints. */
export class Guest {
  #stage = 0;
  lines = [];

  static async join(module, port, name) {
    const guest = new Guest();
    guest.rank = await Rank.make(module);
    guest.group = await guest.rank.join(port, token, name);
    guest.number = guest.rank.call('ringlet_group_rank', guest.group);
    guest.size = guest.rank.call('ringlet_group_size', guest.group);
    return guest;
  }

  run(name, ...rest) {
    return this.rank.start(name, this.group, 0, 0, ...rest);
  }
  collective(form, options) {
    return this.rank.collective(this.group, form, options);
  }
  print(name, pointer, bytes) {
    this.lines.push(`${name} ${hash(this.rank.module.HEAPU8.subarray(pointer, pointer + bytes))}`);
  }
  values(count, rank = this.number) {
    return this.rank.put(makeValues(count, rank, ++this.#stage));
  }

  async reduceEverything() {
    for (const [dtype, name] of dtypes.entries())
      for (const [op, opName] of reduceOps.entries())
        for (const count of [1, 1_000, 40_000]) {
          if (!canReduce(name, opName)) continue;
          const bits = makeBits(dtype, count, this.number, ++this.#stage);
          const values = this.rank.put(bits);
          await this.collective('all_reduce', {
            op,
            dtype,
            input: [values, count],
            output: [values, count],
          });
          this.print(`${name} ${opName} ${count}`, values, bits.length);
          this.rank.free(values);
        }
  }

  async scatterEverything() {
    const { size, number, rank } = this;
    for (const [dtype, name] of dtypes.entries())
      for (const [op, opName] of reduceOps.entries())
        for (const most of [3, 9_000]) {
          if (!canReduce(name, opName)) continue;
          const counts = Array.from({ length: size }, (_, r) => (r === 0 ? 0 : most + r));
          const rows = counts.reduce((total, count) => total + count, 0);
          const bits = makeBits(dtype, rows, number, ++this.#stage);
          const even = counts.map((_, r) => Math.floor(rows / size) + (r < rows % size ? 1 : 0));
          const [values, all] = [rank.put(bits), rank.put(bits.length)];
          for (const [parts, suffix] of [
            [counts, ' with counts'],
            [even, ''],
          ]) {
            const [own, places] = [rank.put(parts[number] * sizes[dtype]), rank.put(Uint32Array.from(parts))];
            const form = suffix === '' ? 'reduce_scatter' : 'reduce_scatter_v';
            const given = suffix === '' ? {} : { counts: places };
            await this.collective(form, {
              op,
              dtype,
              input: [values, rows],
              output: [own, parts[number]],
              ...given,
            });
            await this.collective('all_gather_v', {
              dtype,
              input: [own, parts[number]],
              output: [all, rows],
              counts: places,
            });
            this.print(`reduce_scatter ${name} ${opName}${suffix}`, all, bits.length);
            rank.free(own, places);
          }
          rank.free(values, all);
        }
  }

  async moveEverything() {
    const { size, rank } = this;
    for (const count of [5, 60_000]) {
      let own = this.values(count);
      const [all, swapped, part] = [size * count * 4, size * count * 4, count * 4].map((bytes) => rank.put(bytes));
      await this.collective('all_mean', {
        input: [own, count],
        output: [own, count],
      });
      this.print('all_mean', own, count * 4);
      await this.collective('reduce_mean', {
        input: [own, count],
        output: [own, count],
      });
      await this.collective('broadcast', { output: [own, count] });
      this.print('reduce_mean', own, count * 4);
      own = this.values(count);
      await this.collective('all_gather', {
        input: [own, count],
        output: [all, size * count],
      });
      this.print('all_gather', all, size * count * 4);
      await this.collective('reduce_scatter', {
        op: sum,
        input: [all, size * count],
        output: [part, count],
      });
      await this.collective('all_gather', {
        input: [part, count],
        output: [all, size * count],
      });
      this.print('reduce_scatter', all, size * count * 4);
      await this.collective('mean_scatter', {
        input: [all, size * count],
        output: [part, count],
      });
      await this.collective('all_gather', {
        input: [part, count],
        output: [all, size * count],
      });
      this.print('mean_scatter', all, size * count * 4);
      await this.collective('broadcast', {
        output: [own, count],
        root: size - 1,
      });
      this.print('broadcast', own, count * 4);
      await this.collective('all_to_all', {
        input: [all, size * count],
        output: [swapped, size * count],
      });
      await this.collective('all_to_all', {
        input: [swapped, size * count],
        output: [all, size * count],
      });
      this.print('all_to_all', all, size * count * 4);
      await this.collective('gather', {
        input: [own, count],
        output: [all, size * count],
      });
      await this.collective('scatter', {
        input: [all, size * count],
        output: [own, count],
      });
      this.print('gather and scatter', own, count * 4);
      const shape = rank.put(Uint32Array.of(count));
      const sending = this.run('ringlet_send', f32, own, shape, 1, (this.number + 1) % size);
      await this.run('ringlet_receive', f32, part, shape, 1, (this.number + size - 1) % size);
      await sending;
      this.print('send and recv', part, count * 4);
    }
    const half = await rank.start('ringlet_split', this.group, 0, 0, this.number % 2, -1);
    const number = rank.put(Int32Array.of(rank.call('ringlet_group_size', half)));
    await this.collective('broadcast', { dtype: i32, output: [number, 1] });
    this.print('split', number, 4);
    assert.equal(rank.call('ringlet_group_leave', half), 0);
    await this.rank.barrier(this.group);
  }

  tree(...leaves) {
    const tree = this.rank.call('ringlet_tree');
    for (const [name, values, count] of leaves) {
      const [text, shape] = [this.rank.text(name), this.rank.put(Uint32Array.of(count))];
      assert.equal(this.rank.call('ringlet_tree_add', tree, text, f32, values, shape, 1), 0);
      this.rank.free(text, shape);
    }
    return tree;
  }

  async train() {
    const { rank, group } = this;
    const [a, b] = [this.values(3_001, 0), this.values(17, 0)];
    const parameters = this.tree(['layers.0.weight', a, 3_001], ['layers.0.bias', b, 17]);
    const formula = rank.text('AdamW');
    const optimizer = rank.call('ringlet_optimizer', formula, 0.01, 0, 0, -1);
    const fsdpIn = (wire, feedback) => rank.call('ringlet_fsdp', group, 0, 32 << 20, 1, wire, 0, feedback, 0);
    const fsdp = fsdpIn(-1, 0);
    const inBlocks = blockFormats.map((format, i) => [format, fsdpIn(firstBlocks + i, 1)]);
    for (let step = 0; step < 3; ++step) {
      const [da, db] = [this.values(3_001), this.values(17)];
      const gradients = this.tree(['layers.0.weight', da, 3_001], ['layers.0.bias', db, 17]);
      await rank.start('ringlet_average_gradients', group, 0, gradients, 32 << 20, -1, this.number + 1);
      this.print('average_gradients', da, 3_001 * 4);
      await rank.start('ringlet_fsdp_apply', fsdp, 0, gradients, parameters, optimizer);
      assert.ok(rank.call('ringlet_fsdp_norm', fsdp) > 0);
      this.print('fsdp_apply_gradients', a, 3_001 * 4);
      for (const [format, each] of inBlocks) {
        await rank.start('ringlet_fsdp_apply', each, 0, gradients, parameters, optimizer);
        this.print(`fsdp_apply_gradients in ${format}`, a, 3_001 * 4);
      }
      assert.equal(rank.call('ringlet_object_release', gradients), 0);
    }
  }

  async runAll() {
    await this.reduceEverything();
    await this.scatterEverything();
    await this.moveEverything();
    return this.runTraining();
  }

  /** What `native_rank train` does. */
  async runTraining() {
    await this.train();
    await this.rank.leave();
    return this.lines;
  }
}
