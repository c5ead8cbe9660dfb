// Starts native ranks as processes, for tests: a world of them at a port that the system chose.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';

// Its form is that of `ringlet token`: other tokens are stretched by whoever takes them from a person, which the module does not.
export const token = '4n7x-0c5r-9pqa-te2v-hm8j-w3ky-bz16';

/** Starts `natives` ranks of the same program, as startRanks does. */
export function startNatives(program, natives, guests, args = [], settings = {}) {
  return startRanks(Array(natives).fill([program, ...args]), guests, settings);
}

/** Starts a native rank for each of the command lines, with `settings` in their environment. `output(rank)` resolves to what that rank
 * printed, once it has ended well. */
export async function startRanks(commands, guests, settings = {}) {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  const processes = commands.map(([program, ...args], rank) => {
    const child = spawn(program, args, {
      stdio: ['ignore', 'pipe', 'inherit', ...(rank === 0 ? [server._handle.fd] : [])],
      env: {
        ...process.env,
        ...settings,
        RINGLET_RANK: String(rank),
        RINGLET_WORLD_SIZE: String(commands.length + guests),
        RINGLET_GUESTS: String(guests),
        RINGLET_COORDINATOR: `127.0.0.1:${port}`,
        RINGLET_TOKEN: token,
        ...(rank === 0 ? { RINGLET_COORDINATOR_FD: '3' } : {}),
      },
    });
    const printed = [];
    child.stdout.on('data', (data) => printed.push(data));
    const ended = new Promise((resolve) => child.on('close', (code, signal) => resolve(code ?? signal)));
    return { child, ended, printed };
  });
  server.close();
  return {
    port,
    async output(rank) {
      const { ended, printed } = processes[rank];
      const code = await ended;
      if (code !== 0) throw new Error(`native rank ${rank} ended with ${code}`);
      return Buffer.concat(printed).toString();
    },
    kill(rank) {
      processes[rank].child.kill('SIGKILL');
    },
    stop() {
      for (const { child } of processes) child.kill('SIGKILL');
    },
  };
}
