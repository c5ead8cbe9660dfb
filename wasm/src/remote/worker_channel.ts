import type { Channel } from './messages.js';

// Browsers report no event when a Worker has ended by terminate(), by its own close() or for lack of memory, and pages over plain http
// have no Web Locks that would tell. So the page asks.
const question = 'ringlet: are you there?';
const answer = 'ringlet: here';
const askEvery = 5000;
// Computing keeps a Worker from answering, but never so long: the group's other ranks take a rank that is silent for less time for lost.
const mostUnanswered = 12;

/** Makes the page's end of the channel to a Worker. */
export function browserChannel(worker: Worker): Channel {
  let unanswered = 0;
  let fail: (message: string) => void = () => undefined;
  // Counts questions, not time: a page that was frozen has asked nothing meanwhile.
  const asking = setInterval(() => {
    if (unanswered === mostUnanswered) return fail(`it has not answered for ${(mostUnanswered * askEvery) / 1000} s`);
    ++unanswered;
    worker.postMessage(question);
  }, askEvery);
  return {
    post: (message, transfer) => worker.postMessage(message, [...transfer]),
    onMessage: (handler) =>
      worker.addEventListener('message', ({ data }) => {
        unanswered = 0;
        if (data !== answer) handler(data as never);
      }),
    onFailure: (handler) => {
      fail = handler;
      worker.addEventListener('error', (event) => handler(event.message || 'its script cannot be loaded'));
      worker.addEventListener('messageerror', () => handler('a message could not be read'));
    },
    end: () => {
      clearInterval(asking);
      worker.terminate();
    },
  };
}

/** The part of a Worker's global scope that is used here; the types for pages do not have it. */
export interface WorkerScope {
  postMessage(message: unknown, transfer: Transferable[]): void;
  addEventListener(type: 'message' | 'messageerror' | 'unhandledrejection', handler: (event: MessageEvent) => void): void;
}

/** Makes the Worker's own end of the channel. */
export function scopeChannel(scope: WorkerScope): Channel {
  return {
    post: (message, transfer) => scope.postMessage(message, [...transfer]),
    onMessage: (handler) => {
      scope.addEventListener('message', ({ data }) => (data === question ? scope.postMessage(answer, []) : handler(data as never)));
      // Browsers report to the page, which would wait for an answer otherwise, only what is thrown.
      scope.addEventListener('messageerror', () => {
        throw new Error('a message could not be read');
      });
      scope.addEventListener('unhandledrejection', (event) => {
        throw (event as unknown as PromiseRejectionEvent).reason;
      });
    },
    onFailure: () => undefined,
    end: () => undefined,
  };
}
