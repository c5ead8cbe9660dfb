import { LocalEngine, type ModuleFactory } from '../core/local_engine.js';
import { Cancelled, toFailure } from '../errors.js';
import type { Platform } from '../platform.js';
import type { Channel, Reply, Request } from './messages.js';

/** The Worker's side: holds one world for the page that started it. */
export function serve(channel: Channel, platform: Platform, factory: ModuleFactory): void {
  let engine: LocalEngine | undefined;
  let making: Promise<LocalEngine> | undefined;

  const joined = (): LocalEngine => {
    if (engine === undefined) throw new Cancelled('the group has been left');
    return engine;
  };
  // Operations are started inside this call: the order of messages is the order of the operations.
  const start = (request: Request): Promise<unknown> => {
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
      case 'split':
        return joined().split(request.request);
      case 'leave':
        return request.group < 0 ? leaveWorld() : joined().leave(request.group);
    }
  };
  const leaveWorld = async (): Promise<void> => (await making)?.close();

  channel.onMessage((request: Request) => {
    const answer = (reply: Reply, transfer: ArrayBuffer[]): void => channel.post(reply, transfer);
    const done = (value: unknown): void => {
      const transfer = value instanceof Uint8Array ? [value.buffer as ArrayBuffer] : [];
      answer({ kind: 'done', id: request.id, value: value as never }, transfer);
    };
    const failed = (error: unknown): void => answer({ kind: 'failed', id: request.id, failure: toFailure(error) }, []);
    try {
      start(request).then(done, failed);
    } catch (error) {
      failed(error);
    }
  });
}
