// Builds the npm package and the page from the files that the preset `wasm` has built.
import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const usage = `Usage: node scripts/build.mjs [--modules DIR] [--output DIR]

Builds the npm package into OUTPUT/npm and the trainer's page into OUTPUT/page.

  --modules DIR   where the preset wasm has put ringlet.mjs, ringlet.wasm, train_text.mjs and train_text.wasm (../build/wasm/bin)
  --output DIR    ../build
  --help          this text

Example: npm ci && node scripts/build.mjs`;

function readOptions(words) {
  const options = { modules: join(root, '../build/wasm/bin'), output: join(root, '../build') };
  for (let at = 0; at < words.length; at += 2) {
    const name = /^--(modules|output)$/.exec(words[at])?.[1];
    if (words[at] === '--help') {
      console.log(usage);
      process.exit(0);
    }
    if (name === undefined || words[at + 1] === undefined) {
      console.error(`build: '${words[at]}' is not an option, or lacks its value; see --help`);
      process.exit(2);
    }
    options[name] = resolve(words[at + 1]);
  }
  return options;
}

const { modules, output } = readOptions(process.argv.slice(2));
for (const file of ['ringlet.mjs', 'ringlet.wasm', 'train_text.mjs', 'train_text.wasm']) {
  if (existsSync(join(modules, file))) continue;
  console.error(`build: ${join(modules, file)} is missing; build it first: cmake --preset wasm && cmake --build --preset wasm`);
  process.exit(1);
}

/** Builds into a new folder, and moves it to the final place as the last step, so that nobody sees an incomplete one. */
async function replace(folder, make) {
  const fresh = `${folder}.new`;
  rmSync(fresh, { recursive: true, force: true });
  mkdirSync(fresh, { recursive: true });
  await make(fresh);
  rmSync(folder, { recursive: true, force: true });
  renameSync(fresh, folder);
}

/** Writes the licences of the npm packages that these builds have put in, as theirs demand of copies. */
function writeLicences(builds, file) {
  const inputs = builds.flatMap(({ metafile }) => Object.keys(metafile.inputs));
  // One package may lie in the folder of another.
  const folders = new Set(inputs.map((input) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(input)?.[0]).filter(Boolean));
  const texts = [...folders].sort().map((folder) => {
    const licence = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
    if (licence === undefined) throw new Error(`the package in ${folder} has no licence`);
    const { name, version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    return `${name} ${version}\n\n${readFileSync(join(folder, licence), 'utf8').trim()}\n`;
  });
  writeFileSync(file, texts.join('\n\n'));
}

const shared = { bundle: true, format: 'esm', target: ['es2022'], logLevel: 'warning', legalComments: 'inline', metafile: true };
const moduleAlias = (name) => ({ alias: { 'ringlet-module': join(modules, `${name}.mjs`) } });
// Modules that Emscripten's loader imports only in environments other than the one it is bundled for.
const nodeOnly = { external: ['node:*', 'fs', 'path', 'url', 'module', 'crypto', 'ws', 'worker_threads'] };

async function buildPackage(folder) {
  const dist = join(folder, 'dist');
  const source = (names) => names.map((name) => join(root, 'src', `${name}.ts`));
  const common = { ...shared, ...moduleAlias('ringlet'), ...nodeOnly, outdir: dist, splitting: true };
  const builds = [
    await build({ ...common, entryPoints: source(['index', 'worker']), platform: 'browser', chunkNames: 'browser-[hash]' }),
    await build({ ...common, entryPoints: source(['node', 'worker-node']), platform: 'node', chunkNames: 'node-[hash]' }),
  ];
  writeLicences(builds, join(dist, 'licences.txt'));
  copyFileSync(join(modules, 'ringlet.wasm'), join(dist, 'ringlet.wasm'));
  execFileSync(
    process.execPath,
    [join(root, 'node_modules/typescript/bin/tsc'), '-p', join(root, 'tsconfig.types.json'), '--outDir', dist],
    {
      stdio: 'inherit',
    },
  );
  const { scripts, devDependencies, ...manifest } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, undefined, 2)}\n`);
  copyFileSync(join(root, 'README.md'), join(folder, 'README.md'));
  copyFileSync(join(root, '../LICENSE'), join(folder, 'LICENSE'));
}

async function buildPage(folder) {
  const built = await build({
    ...shared,
    ...moduleAlias('train_text'),
    ...nodeOnly,
    entryPoints: ['page.ts', 'worker.ts', 'page.css'].map((name) => join(root, 'page', name)),
    outdir: folder,
    platform: 'browser',
    minify: true,
    legalComments: 'eof',
    define: { 'import.meta.url': 'self.location.href' },
  });
  writeLicences([built], join(folder, 'licences.txt'));
  for (const file of ['index.html', 'icon.svg']) copyFileSync(join(root, 'page', file), join(folder, file));
  copyFileSync(join(modules, 'train_text.wasm'), join(folder, 'train_text.wasm'));
}

await replace(join(output, 'npm'), buildPackage);
await replace(join(output, 'page'), buildPage);
console.log(`build: ${join(output, 'npm')} and ${join(output, 'page')}`);
