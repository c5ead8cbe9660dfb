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

/** The licences of the C and C++ libraries and of the loader that Emscripten puts into a module. */
function emscriptenLicences() {
  const folder = emscriptenFolder();
  const version = readFileSync(join(folder, 'emscripten-version.txt'), 'utf8').replace(/["\s]/g, '');
  // Debian has them all in one file, with those of much that is not put in.
  const notice = '/usr/share/doc/emscripten/copyright';
  const isOfDebian = folder === '/usr/share/emscripten' && existsSync(notice);
  const texts = isOfDebian ? partsOfNotice(readFileSync(notice, 'utf8')) : textsOfLibraries(folder);
  return `emscripten ${version}\n\n${texts.join('\n\n').trim()}\n`;
}

function emscriptenFolder() {
  try {
    return execFileSync('em-config', ['EMSCRIPTEN_ROOT'], { encoding: 'utf8' }).trim();
  } catch (error) {
    console.error(`build: em-config, which comes with Emscripten, does not say where its licences are: ${error.message}`);
    process.exit(1);
  }
}

/** See https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/ */
function partsOfNotice(notice) {
  const paragraphs = notice.split(/\n{2,}/);
  const licenceOf = (paragraph) => /^License: *(.*)$/m.exec(paragraph)?.[1] ?? '';
  const ofFiles = paragraphs.filter((paragraph) => /^Files:/.test(paragraph));
  const used = ofFiles.filter((paragraph) => /^ (\*$|src\/|system\/lib\/)/m.test(paragraph));
  const names = new Set(used.flatMap((paragraph) => licenceOf(paragraph).split(/ (?:and|or) /)));
  const licences = paragraphs.filter((paragraph) => /^License:/.test(paragraph) && names.has(licenceOf(paragraph)));
  return [...used, ...licences];
}

function textsOfLibraries(folder) {
  const libraries = ['compiler-rt', 'libcxx', 'libcxxabi', 'libunwind'].map((name) => `system/lib/${name}/LICENSE.TXT`);
  return ['LICENSE', 'system/lib/libc/musl/COPYRIGHT', ...libraries].map((file) => readFileSync(join(folder, file), 'utf8').trim());
}

/** Writes the licences of the npm packages that these builds have put in, and of what is in the modules, as theirs demand of copies. */
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
  writeFileSync(file, [...texts, emscriptenLicences()].join('\n\n'));
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
