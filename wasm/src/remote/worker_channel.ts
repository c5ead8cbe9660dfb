import type { Channel } from './messages.js';

/** Makes the page's end of the channel to a Worker. */
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

/** The part of a Worker's global scope that is used here; the types for pages do not have it. */
export interface WorkerScope {
  postMessage(message: unknown, transfer: Transferable[]): void;
  addEventListener(type: 'message', handler: (event: MessageEvent) => void): void;
}

/** Makes the Worker's own end of the channel. */
export function scopeChannel(scope: WorkerScope): Channel {
  return {
    post: (message, transfer) => scope.postMessage(message, [...transfer]),
    onMessage: (handler) => scope.addEventListener('message', (event) => handler(event.data as never)),
    onFailure: () => undefined,
    end: () => undefined,
  };
}
