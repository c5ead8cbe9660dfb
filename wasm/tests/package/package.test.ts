import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import * as esbuild from 'esbuild';
import type { Browser } from 'playwright-core';
import * as vite from 'vite';
import { openPage, startChromium } from '../browser/chromium.js';
import { servePage } from '../browser/page_server.js';

// Tests the package as its users get it: packed, installed into a project, checked, bundled and run.
const built = resolve(process.env['RINGLET_NPM'] ?? 'build/npm');
const page = resolve(process.env['RINGLET_PAGE'] ?? 'build/page');
const modules = resolve(process.env['RINGLET_NODE_MODULES'] ?? 'node_modules');
let project: string;
let packed: { readonly files: readonly { readonly path: string }[]; readonly filename: string };
let browser: Browser;

const program = `
import { alone, InvalidArgument, Tensor } from 'ringlet';
import type { Group } from 'ringlet';

export async function check(options: Parameters<typeof alone>[0]): Promise<string> {
  const group: Group = await alone(options);
  const sum: Float32Array = await group.allSum(Float32Array.of(1, 2, 3));
  const half: Tensor = await group.allGather(new Tensor(Uint16Array.of(0x3c00), { dtype: 'f16' }));
  const wrong = await group.broadcast(sum, 5).catch((error: unknown) => error instanceof InvalidArgument);
  await group.leave();
  return [group.rank, group.size, ...sum, half.dtype, ...half.data, wrong].join(' ');
}
`;
const expected = '0 1 1 2 3 f16 15360 true';

before(async () => {
  project = mkdtempSync(join(tmpdir(), 'ringlet-package-'));
  [packed] = JSON.parse(
    execFileSync('npm', ['pack', '--json', '--pack-destination', project, built], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }),
  );
  const installed = join(project, 'node_modules', 'ringlet');
  mkdirSync(installed, { recursive: true });
  execFileSync('tar', ['-xzf', join(project, packed.filename), '--strip-components=1', '-C', installed]);
  symlinkSync(join(modules, 'ws'), join(project, 'node_modules', 'ws'));
  writeFileSync(join(project, 'package.json'), '{"type": "module"}');
  writeFileSync(join(project, 'check.ts'), program);
  browser = await startChromium();
});

after(async () => {
  await browser.close();
  rmSync(project, { recursive: true, force: true });
});

/** Loads a page of these files in Chromium, and returns the text that it shows. It may complain of what is allowed. */
async function runInChromium(folder: string, allowed: readonly RegExp[] = []): Promise<string | null> {
  const { url, stop } = await servePage(folder);
  const { page, complaints } = await openPage(browser);
  try {
    await page.goto(url);
    await page.locator('#result:not(:empty)').waitFor();
    assert.deepEqual(
      complaints.filter((complaint) => !allowed.some((pattern) => pattern.test(complaint))),
      [],
    );
    return await page.locator('#result').textContent();
  } finally {
    await page.context().close();
    stop();
  }
}

const html = (script: string): string =>
  `<!doctype html><title>check</title><link rel="icon" href="icon.svg"><p id="result"></p><script type="module" src="${script}"></script>`;
const show = (options: string): string =>
  `import { check } from './check';\ncheck(${options}).catch(String).then((text) => { document.getElementById('result').textContent = text; });`;

test('it holds what users need, and nothing else', () => {
  const paths = packed.files.map(({ path }) => path);
  for (const path of paths) assert.match(path, /^(LICENSE|README\.md|package\.json|dist\/([\w./-]+\.(js|d\.ts|wasm)|licences\.txt))$/);
  for (const path of [
    'dist/index.js',
    'dist/index.d.ts',
    'dist/node.js',
    'dist/worker.js',
    'dist/worker-node.js',
    'dist/ringlet.wasm',
    'README.md',
  ]) {
    assert.ok(paths.includes(path), path);
  }
});

test('it and the page have the licences of the packages that are bundled into them, and of what Emscripten puts into modules', () => {
  for (const [file, names] of [
    [join(project, 'node_modules/ringlet/dist/licences.txt'), ['@noble/ciphers', '@noble/curves', '@noble/hashes', 'emscripten']],
    [join(page, 'licences.txt'), ['@noble/ciphers', '@noble/curves', '@noble/hashes', 'uplot', 'emscripten']],
  ] as const) {
    const parts = readFileSync(file, 'utf8').split(/^(?=\S+ \d+\.\d+\.\d+$)/m);
    assert.deepEqual(
      parts.map((part) => part.split(' ')[0]),
      names,
    );
    for (const part of parts) assert.match(part, /Permission is hereby granted/, file);
    for (const holder of [/The Emscripten Authors/, /Rich Felker/, /LLVM/]) assert.match(parts.at(-1) ?? '', holder, file);
  }
});

test('its types are complete, for pages and, without those of the DOM, for Node', () => {
  writeFileSync(
    join(project, 'page.ts'),
    "import type { JoinOptions } from 'ringlet';\nexport const made: JoinOptions['dedicatedWorker'] = () => new Worker('own.js');\n",
  );
  writeFileSync(
    join(project, 'threads.ts'),
    `import { Worker } from 'node:worker_threads';\n${readFileSync(join(project, 'page.ts'), 'utf8')}`,
  );
  for (const [file, lib, types] of [
    ['page.ts', ['ES2022', 'DOM'], []],
    ['threads.ts', ['ES2022'], ['node']],
  ] as const) {
    const compilerOptions = {
      strict: true,
      noEmit: true,
      target: 'ES2022',
      module: 'NodeNext',
      lib,
      types,
      typeRoots: [join(modules, '@types')],
    };
    writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['check.ts', file] }));
    execFileSync(process.execPath, [join(modules, 'typescript/bin/tsc'), '-p', project], { stdio: 'inherit' });
  }
});

test('Node runs it, in its own thread, with a Worker, and with one of the program', async () => {
  const output = join(project, 'check.js');
  await esbuild.build({ entryPoints: [join(project, 'check.ts')], outfile: output, format: 'esm' });
  const { check } = (await import(output)) as { check(options: object): Promise<string> };
  assert.equal(await check({}), expected);
  assert.equal(await check({ dedicatedWorker: true }), expected);
  const own = join(project, 'own.mjs');
  writeFileSync(own, "import 'ringlet/worker';\n");
  assert.equal(await check({ dedicatedWorker: () => new Worker(own) }), expected);
});

test('bundled by esbuild it runs in a browser', async () => {
  const folder = join(project, 'esbuild');
  writeFileSync(join(project, 'esbuild.ts'), show("{ wasm: '/ringlet.wasm' }"));
  writeFileSync(
    join(project, 'esbuild-worker.ts'),
    show("{ wasm: '/ringlet.wasm', dedicatedWorker: new Worker('own.js', { type: 'module' }) }"),
  );
  writeFileSync(join(project, 'own.ts'), "import 'ringlet/worker';\n");
  await esbuild.build({
    entryPoints: ['esbuild.ts', 'esbuild-worker.ts', 'own.ts'].map((name) => join(project, name)),
    bundle: true,
    format: 'esm',
    outdir: folder,
    logLevel: 'warning',
  });
  cpSync(join(project, 'node_modules/ringlet/dist/ringlet.wasm'), join(folder, 'ringlet.wasm'));
  writeFileSync(join(folder, 'icon.svg'), '<svg xmlns="http://www.w3.org/2000/svg"/>');
  for (const script of ['esbuild.js', 'esbuild-worker.js']) {
    writeFileSync(join(folder, 'index.html'), html(script));
    assert.equal(await runInChromium(folder), expected, script);
  }
});

test('in a browser an error that nobody catches ends the groups of a Worker', async () => {
  const folder = join(project, 'uncaught');
  writeFileSync(
    join(project, 'joins.ts'),
    `import { alone } from 'ringlet';
    const group = await alone({ wasm: '/ringlet.wasm' });
    setTimeout(() => Promise.reject(new Error('nobody catches this')));
    await new Promise((resolve) => setTimeout(resolve, 200));
    postMessage(await group.barrier().catch((error: Error) => error.name));`,
  );
  writeFileSync(
    join(project, 'uncaught.ts'),
    `new Worker('joins.js', { type: 'module' }).onmessage = ({ data }) => { document.getElementById('result')!.textContent = data; };`,
  );
  writeFileSync(
    join(project, 'ends.ts'),
    "import 'ringlet/worker';\nsetTimeout(() => Promise.reject(new Error('nobody catches this')), 500);\n",
  );
  writeFileSync(
    join(project, 'told.ts'),
    `import { alone, type Progress } from 'ringlet';
    const show = (text: string) => { document.getElementById('result')!.textContent = text; };
    const onProgress = (news: Progress) => { if (news.kind === 'failed') show(news.failure.message); };
    await alone({ wasm: '/ringlet.wasm', onProgress, dedicatedWorker: new Worker('ends.js', { type: 'module' }) });`,
  );
  await esbuild.build({
    entryPoints: ['joins.ts', 'uncaught.ts', 'ends.ts', 'told.ts'].map((name) => join(project, name)),
    bundle: true,
    format: 'esm',
    outdir: folder,
    logLevel: 'warning',
  });
  cpSync(join(project, 'node_modules/ringlet/dist/ringlet.wasm'), join(folder, 'ringlet.wasm'));
  writeFileSync(join(folder, 'icon.svg'), '<svg xmlns="http://www.w3.org/2000/svg"/>');
  for (const [script, result] of [
    ['uncaught.js', /^Cancelled$/],
    ['told.js', /Worker ended: .*nobody catches this/],
  ] as const) {
    writeFileSync(join(folder, 'index.html'), html(script));
    assert.match((await runInChromium(folder, [/nobody catches this/])) ?? '', result);
  }
});

test('bundled by vite it runs in a browser, its wasm file and Worker found by themselves', async () => {
  const source = join(project, 'vite');
  mkdirSync(join(source, 'public'), { recursive: true });
  writeFileSync(join(source, 'public', 'icon.svg'), '<svg xmlns="http://www.w3.org/2000/svg"/>');
  cpSync(join(project, 'check.ts'), join(source, 'check.ts'));
  for (const options of ['{}', '{ dedicatedWorker: true }']) {
    writeFileSync(join(source, 'main.ts'), show(options));
    writeFileSync(join(source, 'index.html'), html('/main.ts'));
    await vite.build({ root: source, logLevel: 'error', configFile: false, build: { modulePreload: { polyfill: false } } });
    assert.equal(await runInChromium(join(source, 'dist')), expected, `${options} of ${readdirSync(join(source, 'dist/assets'))}`);
  }
});
