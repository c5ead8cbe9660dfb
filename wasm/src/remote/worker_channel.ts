import type { Channel } from './messages.js';

/** The page's end of a Worker. */
export function browserChannel(worker: Worker): Channel {
  return {
    post: (message, transfer) => worker.postMessage(message, [...transfer]),
    onMessage: (handler) => worker.addEventListener('message', (event) => handler(event.data as never)),
    onFailure: (handler) => {
      worker.addEventListener('error', (event) => handler(event.message || 'its script cannot be loaded'));
      worker.addEventListener('messageerror', () => handler('a message could not be read'));
    },
    end: () => worker.terminate(),
  };
}

/** What a Worker's global scope is, as far as it is used here; the page's own types know none. */
export interface WorkerScope {
  postMessage(message: unknown, transfer: Transferable[]): void;
  addEventListener(type: 'message', handler: (event: MessageEvent) => void): void;
}

/** The Worker's own end. */
export function scopeChannel(scope: WorkerScope): Channel {
  return {
    post: (message, transfer) => scope.postMessage(message, [...transfer]),
    onMessage: (handler) => scope.addEventListener('message', (event) => handler(event.data as never)),
    onFailure: () => undefined,
    end: () => undefined,
  };
}
