// ws_peer.mjs SERVER WS_FOLDER tests web_echo_server with the npm package ws, an independent client.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomBytes, randomInt } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';
import { createRequire } from 'node:module';

const [serverProgram, wsFolder] = process.argv.slice(2);
const WebSocket = createRequire(import.meta.url)(wsFolder);
const server = spawn(serverProgram, { stdio: ['pipe', 'pipe', 'inherit'] });
const port = Number(await once(server.stdout, 'data'));
const url = `ws://127.0.0.1:${port}/ring`;

async function open(options = {}) {
  const socket = new WebSocket(url, options);
  socket.binaryType = 'nodebuffer';
  await once(socket, 'open');
  return socket;
}

/** Resolves with what came, once it has this many bytes. */
function receive(socket, bytes) {
  const parts = [];
  let size = 0;
  return new Promise((resolve, reject) => {
    socket.on('close', (code) => reject(new Error(`closed with ${code} after ${size} of ${bytes} bytes`)));
    socket.on('message', (part, isBinary) => {
      assert(isBinary);
      parts.push(part);
      size += part.length;
      if (size === bytes) resolve(Buffer.concat(parts));
    });
  });
}

async function closeCode(socket) {
  const [code] = await once(socket, 'close');
  return code;
}

async function echo(socket, sizes) {
  const sent = Buffer.concat(sizes.map((size) => randomBytes(size)));
  const received = receive(socket, sent.length);
  let at = 0;
  for (const size of sizes) {
    socket.send(sent.subarray(at, at + size), { binary: true, fin: at + size === sent.length || randomInt(3) > 0 });
    if (randomInt(5) === 0) socket.ping(randomBytes(randomInt(126)));
    at += size;
  }
  assert((await received).equals(sent));
  socket.removeAllListeners();
}

const tests = {
  async 'bytes come back in order, whatever the messages'() {
    const socket = await open({ perMessageDeflate: true });
    assert.equal(socket.extensions, '');
    for (const size of [1, 125, 126, 65535, 65536, 5_000_000]) await echo(socket, [size]);
    for (let round = 0; round < 20; ++round)
      await echo(
        socket,
        Array.from({ length: 30 }, () => randomInt(1, 20_000)),
      );
    socket.close(1000, 'done');
    assert.equal(await closeCode(socket), 1000);
  },
  async 'many sockets at once'() {
    const sockets = await Promise.all(Array.from({ length: 20 }, () => open()));
    await Promise.all(sockets.map((socket) => echo(socket, [100_000, 1, 300_000])));
    for (const socket of sockets) socket.terminate();
  },
  async 'a ping is answered'() {
    const socket = await open();
    socket.ping('hello');
    const [payload] = await once(socket, 'pong');
    assert.equal(String(payload), 'hello');
    socket.close(4001);
    assert.equal(await closeCode(socket), 4001);
  },
  async 'text is refused with 1003'() {
    const socket = await open();
    socket.send('text');
    assert.equal(await closeCode(socket), 1003);
  },
  async 'frames without a mask are refused with 1002'() {
    const socket = await open();
    socket.send(Buffer.from('x'), { mask: false });
    assert.equal(await closeCode(socket), 1002);
  },
  async 'another origin is refused'() {
    const socket = new WebSocket(url, { origin: 'http://elsewhere.example' });
    const [, response] = await once(socket, 'unexpected-response');
    assert.equal(response.statusCode, 403);
    socket.on('error', () => {});
    socket.terminate();
    const own = await open({ origin: `http://127.0.0.1:${port}` });
    own.terminate();
  },
  async 'other versions are refused with 426'() {
    const socket = new WebSocket(url, { protocolVersion: 8 });
    const [, response] = await once(socket, 'unexpected-response');
    assert.equal(response.statusCode, 426);
    assert.equal(response.headers['sec-websocket-version'], '13');
    socket.on('error', () => {});
    socket.terminate();
  },
  async 'node gets the page over kept connections'() {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    for (let round = 0; round < 5; ++round) {
      const request = http.get({ port, agent });
      const [response] = await once(request, 'response');
      assert.equal(response.statusCode, 200);
      assert.equal(request.reusedSocket, round > 0);
      let text = '';
      for await (const part of response) text += part;
      assert.equal(text, '<p>echo</p>');
    }
    agent.destroy();
  },
  async 'who hangs up in between harms nobody'() {
    const good = await open();
    for (const piece of ['', 'GET', 'GET /ring HTTP/1.1\r\nUpgrade: webso', '\0\0\0\0\0\0\0\0']) {
      const socket = net.connect(port);
      socket.on('error', () => {});
      await once(socket, 'connect');
      socket.write(piece);
      socket.resetAndDestroy();
    }
    await echo(good, [50_000]);
    good.terminate();
  },
};

try {
  for (const [name, test] of Object.entries(tests)) {
    await test();
    console.log(`passed: ${name}`);
  }
} finally {
  server.stdin.end();
  await once(server, 'exit');
}
