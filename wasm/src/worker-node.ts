import { parentPort } from 'node:worker_threads';
import makeModule from 'ringlet-module';
import { nodePlatform } from './node_platform.js';
import { serve } from './remote/serve.js';

const port = parentPort;
if (port === null) throw new Error('this script is what join() starts with `dedicatedWorker`; it does nothing by itself');
serve(
  {
    post: (message, transfer) => port.postMessage(message, [...transfer]),
    onMessage: (handler) => void port.on('message', (message) => handler(message as never)),
    onFailure: () => undefined,
    end: () => undefined,
  },
  nodePlatform,
  makeModule,
);
