import makeModule from 'ringlet-module';
import { browserPlatform } from './browser_platform.js';
import { serve } from './remote/serve.js';
import { scopeChannel, type WorkerScope } from './remote/worker_channel.js';

serve(scopeChannel(self as unknown as WorkerScope), browserPlatform, makeModule);
