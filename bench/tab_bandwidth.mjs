#!/usr/bin/env node
// Measures megabytes per second between a tab, or Node, and native ranks, with encryption and without it, in turns with a bare WebSocket.
import { spawn } from 'node:child_process';
import { createHmac, randomFillSync } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { startNatives, token } from '../tests/wasm/natives.mjs';
import { collectiveForms } from '../tests/wasm/tables.mjs';
import { encryptingHost, measure } from './tab_client.mjs';

const require = createRequire(new URL('../wasm/package.json', import.meta.url));
const { WebSocket, WebSocketServer } = require('ws');
const here = fileURLToPath(new URL('.', import.meta.url));

if (process.argv[2] === 'serve-bare') await serveBare();
else {
  await main();
  process.exit(); // the timers of the rank's module would keep Node running
}

/** Runs the server of the bare measurement, in a process of its own. */
async function serveBare() {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: false, maxPayload: 1 << 30 });
  await once(server, 'listening');
  console.log(server.address().port);
  server.on('connection', (socket) => {
    let left = 0;
    socket.on('message', async (data, isBinary) => {
      if (isBinary) {
        left -= data.length;
        if (left <= 0) socket.send('received');
        return;
      }
      const request = JSON.parse(data);
      left = request.receive ?? 0;
      const message = Buffer.alloc(256 << 10);
      for (let at = 0; at < (request.send ?? 0); at += message.length) {
        if (socket.bufferedAmount < 4 << 20) socket.send(message);
        else await new Promise((sent) => socket.send(message, sent));
      }
    });
  });
}

async function main() {
  const [where = 'node', module = 'build/wasm/bin/ringlet.mjs', program = 'build/release/tests/native_rank'] = process.argv.slice(2);
  if (!['node', 'chromium'].includes(where)) {
    console.log(`Usage: bench/tab_bandwidth.mjs node|chromium [MODULE [NATIVE_RANK]]

Prints medians in MB/s, each way, of messages of 8 MiB between a native rank and a rank in Node or in headless Chromium, over a plain and over an encrypted
link, and of a bare WebSocket to a server in Node. Percentages are of what the bare one reaches. Build with
  cmake --preset wasm && cmake --build --preset wasm --target ringlet
  cmake --preset release && cmake --build --preset release --target native_rank`);
    process.exit(where === '--help' || where === '-h' ? 0 : 2);
  }
  const options = { bytes: 8 << 20, messages: 16, turns: 9, token, barrier: collectiveForms.indexOf('barrier') };
  const bare = spawn(process.execPath, [fileURLToPath(import.meta.url), 'serve-bare'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const pages = createServer().listen(0, '127.0.0.1');
  await once(pages, 'listening');
  const origin = `http://127.0.0.1:${pages.address().port}`;
  const start = (encrypt) =>
    startNatives(resolve(program), 1, 1, ['exchange', ...[options.bytes, options.messages, options.turns].map(String)], {
      RINGLET_ORIGINS: origin,
      RINGLET_ENCRYPT: encrypt,
    });
  const [plain, encrypted] = [await start('off'), await start('on')];
  try {
    const [line] = await once(bare.stdout, 'data');
    const all = { ...options, plainPort: plain.port, encryptedPort: encrypted.port, barePort: Number(line) };
    report(where, await (where === 'node' ? measureInNode(resolve(module), all) : measureInTab(resolve(module), all, pages, origin)));
  } finally {
    plain.stop();
    encrypted.stop();
    bare.kill();
    pages.close();
    pages.closeAllConnections();
  }
}

function report(where, rows) {
  const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];
  for (const way of ['up', 'down']) {
    const [plain, encrypted, bare] = ['plain', 'encrypted', 'bare'].map((kind) => median(rows.map((row) => row[kind][way])));
    const text = (speed) => `${speed.toFixed(0)} MB/s (${((100 * speed) / bare).toFixed(0)} %)`;
    console.log(`${where} ${way}: plain ${text(plain)}, encrypted by chacha20 ${text(encrypted)}, bare ${bare.toFixed(0)} MB/s`);
  }
}

async function measureInNode(module, options) {
  const { default: makeModule } = await import(module);
  const noble = (name) => import(pathToFileURL(require.resolve(`@noble/${name}`)));
  return measure(
    {
      ...encryptingHost({ ...(await noble('ciphers/chacha.js')), ...(await noble('curves/ed25519.js')) }),
      openSocket: (url) => Object.assign(new WebSocket(url, { perMessageDeflate: false }), { binaryType: 'nodebuffer' }),
      random: (bytes) => randomFillSync(bytes),
      sign: (key, message) => createHmac('sha256', key).update(message).digest(),
      makeModule: (host) => makeModule({ host, wasmBinary: readFileSync(module.replace(/\.mjs$/, '.wasm')) }),
    },
    options,
  );
}

async function measureInTab(module, options, pages, origin) {
  const { build } = require('esbuild');
  const bundle = await build({
    entryPoints: [resolve(here, 'tab_page.mjs')],
    bundle: true,
    write: false,
    format: 'esm',
    alias: { 'ringlet-module': module },
    nodePaths: [resolve(here, '../wasm/node_modules')],
  });
  const rows = servePage(pages, bundle.outputFiles[0].text, readFileSync(module.replace(/\.mjs$/, '.wasm')), options);
  const profile = mkdtempSync(join(tmpdir(), 'ringlet-bandwidth-'));
  // Chromium runs without a debugger: one that is attached is told of each message, which costs more than all else.
  const browser = spawn(
    process.env.CHROMIUM ?? '/usr/bin/chromium',
    ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', `--user-data-dir=${profile}`, origin],
    { stdio: 'ignore' },
  );
  try {
    return await rows;
  } finally {
    browser.kill();
    await once(browser, 'exit');
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Serves the page that measures, and returns what it reports. */
function servePage(pages, script, wasm, options) {
  const files = {
    '/': ['text/html', '<!doctype html><script type="module" src="/page.mjs"></script>'],
    '/page.mjs': ['text/javascript', script],
    '/ringlet.wasm': ['application/wasm', wasm],
    '/options': ['application/json', JSON.stringify(options)],
  };
  return new Promise((resolve, reject) => {
    pages.on('request', async (request, response) => {
      if (request.method === 'POST') {
        let text = '';
        for await (const data of request) text += data;
        const { rows, problem } = JSON.parse(text);
        response.end();
        return rows ? resolve(rows) : reject(new Error(problem));
      }
      const [type, body] = files[request.url] ?? ['text/plain', ''];
      response.writeHead(body === '' ? 404 : 200, { 'content-type': type }).end(body);
    });
  });
}
