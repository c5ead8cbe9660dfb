import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

/** The folder of the programs. */
export const programs = resolve(process.env['RINGLET_BIN'] ?? 'build/release/bin');
/** The page's files. */
export const pageFolder = resolve(process.env['RINGLET_PAGE'] ?? 'build/page');

/** The options of the run to serve. */
export interface ServeOptions {
  readonly ranks: number;
  /** 0: no browser may come. */
  readonly browsers: number;
  readonly steps: number;
  /** Milliseconds of silence after which a rank is lost. */
  readonly heartbeatTimeout?: number;
  /** Whether the training goes on when a rank is lost; by default true. */
  readonly elastic?: boolean;
  /** The least and the largest number of native ranks, such as 1:2: those that fail are started again. */
  readonly bounds?: string;
  /** More options of `train_text`. */
  readonly more?: readonly string[];
  /** The program of the native ranks, and the page's files: `train_text` and its page unless given. */
  readonly program?: readonly string[];
  readonly page?: string;
}

/** A run of native ranks that wait for browsers and train with them. */
export class Served {
  readonly #process: ChildProcess;
  readonly #folder: string;
  readonly #ended: Promise<number | null>;
  #output = '';
  #errors = '';
  #waiting: (() => void)[] = [];

  private constructor(process: ChildProcess, folder: string) {
    this.#process = process;
    this.#folder = folder;
    process.stdout?.on('data', (data: Buffer) => this.#hear((this.#output += data.toString())));
    process.stderr?.on('data', (data: Buffer) => this.#hear((this.#errors += data.toString())));
    this.#ended = once(process, 'exit').then(([code]) => {
      this.#hear('');
      return code as number | null;
    });
  }

  static start({
    ranks,
    browsers,
    steps,
    heartbeatTimeout = 10_000,
    elastic = true,
    bounds,
    more = [],
    program,
    page = pageFolder,
  }: ServeOptions): Served {
    const folder = mkdtempSync(join(tmpdir(), 'ringlet-training-'));
    const text = join(folder, 'text.txt');
    writeFileSync(text, 'The quick brown fox jumps over the lazy dog, and the dog sleeps on. '.repeat(400));
    const launch = ['launch', '-n', String(ranks), '--no-prefix'];
    const serve = [
      'serve',
      '--ranks',
      String(ranks),
      '--browsers',
      String(browsers),
      '--host',
      '127.0.0.1',
      '--port',
      '0',
      '--page',
      page,
      ...(elastic ? [] : ['--no-elastic']),
      ...(bounds === undefined ? [] : ['--elastic', bounds]),
    ];
    const train = [
      join(programs, 'train_text'),
      '--data',
      text,
      '--steps',
      String(steps),
      '--batch',
      '8',
      '--context',
      '32',
      '--check-every',
      '5',
      '--json',
      ...more,
    ];
    const process_ = spawn(join(programs, 'ringlet'), [...(browsers === 0 ? launch : serve), '--', ...(program ?? train)], {
      env: { ...process.env, RINGLET_HEARTBEAT_TIMEOUT_MS: String(heartbeatTimeout) },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    return new Served(process_, folder);
  }

  /** Waits for the link that is printed for browsers. */
  async link(): Promise<string> {
    return this.says(/http:\/\/127\.0\.0\.1:\d+\/#token=\S+/);
  }

  /** Waits until something like this has been printed, and returns it. */
  async says(pattern: RegExp): Promise<string> {
    await this.#until(() => pattern.test(this.text));
    return pattern.exec(this.text)?.[0] ?? '';
  }

  /** All that was printed. */
  get text(): string {
    return this.#output + this.#errors;
  }

  /** The exit code; resolves when all native ranks have ended. */
  get exitCode(): Promise<number | null> {
    return this.#ended;
  }

  /** Returns the line of JSON that rank 0 prints at its end. */
  async report(): Promise<Readonly<Record<string, unknown>>> {
    await this.#ended;
    const line = this.#output.split('\n').find((text) => text.includes('"parameter_hash"'));
    if (line === undefined) throw new Error(`the native ranks made no report:\n${this.text}`);
    return JSON.parse(line.slice(line.indexOf('{'))) as Readonly<Record<string, unknown>>;
  }

  /** Whether the job has not ended. */
  get runs(): boolean {
    return this.#process.exitCode === null && this.#process.signalCode === null;
  }

  /** Kills a native rank, by its number at the start. */
  kill(rank: number): void {
    const isRank = (pid: string): boolean =>
      readFileSync(`/proc/${pid}/status`, 'utf8').includes(`\nPPid:\t${this.#process.pid}\n`) &&
      readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`\0RINGLET_RANK=${rank}\0`);
    for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
      try {
        if (isRank(pid)) process.kill(Number(pid), 'SIGKILL');
      } catch {
        // Another process that has ended meanwhile, or is not ours.
      }
    }
  }

  /** Ends the native ranks if they still run. */
  async stop(): Promise<void> {
    if (this.#process.exitCode === null && this.#process.signalCode === null) this.#process.kill('SIGTERM');
    await this.#ended;
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #hear(_: string): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  async #until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      if (this.#process.exitCode !== null) throw new Error(`the native ranks ended with code ${this.#process.exitCode}:\n${this.text}`);
      await new Promise<void>((wake) => this.#waiting.push(wake));
    }
  }
}
