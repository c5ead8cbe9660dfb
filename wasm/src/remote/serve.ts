import { LocalEngine, type ModuleFactory } from '../core/local_engine.js';
import type { NamedOperand } from '../engine.js';
import { Cancelled, toFailure } from '../errors.js';
import type { Platform } from '../platform.js';
import type { Channel, Reply, Request, Value, Written } from './messages.js';

/** The Worker's side of a RemoteEngine: holds one world for the page that started it. */
export function serve(channel: Channel, platform: Platform, factory: ModuleFactory): void {
  let engine: LocalEngine | undefined;
  let making: Promise<LocalEngine> | undefined;

  const joined = (): LocalEngine => {
    if (engine === undefined) throw new Cancelled('the group has been left');
    return engine;
  };
  // Operations are started inside this call, so they have the order of the messages.
  const start = (request: Request): Promise<Value> => {
    switch (request.kind) {
      case 'join':
        making = LocalEngine.make(platform, factory, request.wasm, request.request.secure, (progress) =>
          channel.post({ kind: 'progress', progress }, []),
        );
        return making.then((made) => {
          engine = made;
          return made.join(request.request);
        });
      case 'run':
        return joined().run(request.operation);
      case 'average':
        return joined()
          .average(request.request)
          .then((): Written => ({ leaves: bytesOf(request.request.leaves) }));
      case 'fsdp':
        return joined()
          .applyFsdp(request.request)
          .then((norm): Written => ({ leaves: bytesOf(request.request.parameters), norm }));
      case 'sync':
        return joined()
          .sync(request.request)
          .then((synced): Written => ({ leaves: bytesOf(request.request.state), synced }));
      case 'vote':
        return joined().vote(request.request);
      case 'split':
        return joined().split(request.request);
      case 'algorithm':
        return joined().algorithm(request.group, request.operation, request.bytes);
      case 'placement':
        return joined().placement(request.group);
      case 'state':
        return joined().worldState();
      case 'revoke':
        return joined()
          .revoke()
          .then(() => undefined);
      case 'forget':
        return joined()
          .forget(request.optimizer)
          .then(() => undefined);
      case 'leave':
        return request.group < 0
          ? leaveWorld()
          : joined()
              .leave(request.group)
              .then(() => undefined);
    }
  };
  const leaveWorld = async (): Promise<undefined> => void (await (await making)?.close());

  channel.onMessage((request: Request) => {
    const answer = (reply: Reply, transfer: ArrayBuffer[]): void => channel.post(reply, transfer);
    const done = (value: Value): void => answer({ kind: 'done', id: request.id, value }, transferOf(value));
    const failed = (error: unknown): void => answer({ kind: 'failed', id: request.id, failure: toFailure(error) }, []);
    try {
      start(request).then(done, failed);
    } catch (error) {
      failed(error);
    }
  });
}

function bytesOf(leaves: readonly NamedOperand[]): Uint8Array[] {
  return leaves.map(({ at }) => at as Uint8Array);
}

function transferOf(value: Value): ArrayBuffer[] {
  if (value instanceof Uint8Array) return [value.buffer as ArrayBuffer];
  return typeof value === 'object' && 'leaves' in value ? value.leaves.map(({ buffer }) => buffer as ArrayBuffer) : [];
}
