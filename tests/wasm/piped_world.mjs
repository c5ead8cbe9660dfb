// Makes worlds of modules of this process, whose links are pipes between WebSockets.
import { Rank, WebSocketServer } from './rank.mjs';

const module = process.env.RINGLET_TEST_MODULE;

/** Starts a server that joins the first two connections: each gets what the other sends, in messages of other sizes. */
async function openPipe(rng) {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: false });
  await new Promise((resolve) => server.once('listening', resolve));
  const ends = [];
  const early = [[], []];
  server.on('connection', (socket) => {
    const side = ends.push(socket) - 1;
    const cut = (data) => {
      const to = ends[1 - side];
      if (!to) return early[side].push(data);
      for (let at = 0; at < data.length;) {
        const bytes = rng === undefined ? data.length : 1 + Math.floor(rng() * 70_000);
        to.send(data.subarray(at, at + bytes));
        at += bytes;
      }
    };
    socket.on('message', cut);
    socket.on('close', (code) => ends[1 - side]?.close(code === 1005 ? 1000 : code === 1006 ? 1011 : code));
    if (side === 1) for (const data of early[0].splice(0)) socket.send(data);
  });
  return { port: server.address().port, ends, close: () => server.close() };
}

/** Returns a function that gives numbers from 0 to 1, the same ones for the same seed. */
export function seeded(seed) {
  let state = seed;
  return () => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0) / 2 ** 32;
}

/** Makes `size` ranks, each with a link to every other. With `rng` messages are cut at random. */
export async function makeWorld(size, rng, limit = 60_000) {
  const ranks = await Promise.all(Array.from({ length: size }, () => Rank.make(module)));
  const pipes = new Map();
  const worlds = ranks.map((rank, index) => rank.call('test_world', index, size, limit));
  const dials = [];
  for (let one = 0; one < size; ++one)
    for (let other = one + 1; other < size; ++other) {
      const pipe = await openPipe(rng);
      pipes.set(`${one} ${other}`, pipe);
      dials.push(
        ranks[one].start('test_dial', worlds[one], other, pipe.port),
        ranks[other].start('test_dial', worlds[other], one, pipe.port),
      );
    }
  await Promise.all(dials);
  const groups = ranks.map((rank, index) => rank.call('ringlet_world_group', worlds[index]));
  const end = async () => {
    await Promise.all(ranks.map((rank, index) => rank.start('ringlet_leave', worlds[index])));
    for (const pipe of pipes.values()) pipe.close();
  };
  return { ranks, worlds, groups, pipes, end };
}
