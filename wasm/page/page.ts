import { keepAwake } from './keep_awake.js';
import type { News, Order } from './news.js';
import { encryption, forgetToken, rememberToken, takeToken } from './token.js';
import { PageView } from './view/page_view.js';
import { browserName } from './view/words.js';
import { watchPresence } from './presence.js';
import { failureOfWorker } from './worker_failure.js';

const view = new PageView();
const presence = watchPresence((text) => view.note(text));
let worker: Worker | undefined;
let token = takeToken();

function join(): void {
  worker?.terminate();
  keepAwake(false);
  view.reset();
  const started = new Worker('worker.js', { type: 'module' });
  worker = started;
  started.addEventListener('message', (event: MessageEvent<News>) => hear(started, event.data));
  started.addEventListener('error', (event) => {
    event.preventDefault();
    hear(started, { kind: 'failed', failure: failureOfWorker(event, view.isTraining) });
  });
  const url = `${location.origin}/${encryption()}`;
  const order: Order = { kind: 'join', url, token: token ?? '', name: browserName(navigator.userAgent) };
  started.postMessage(order);
}

function hear(from: Worker, news: News): void {
  if (from !== worker) return;
  view.tell(news, presence.wasOffline());
  if (news.kind === 'joined') keepAwake(true);
  if (news.kind === 'finished' || news.kind === 'failed') keepAwake(false);
  if (news.kind === 'failed') {
    if (news.failure.code === 'authentication') forgetToken();
    from.terminate();
  }
}

document.getElementById('token-form')?.addEventListener('submit', (event) => {
  event.preventDefault();
  token = (document.getElementById('token') as HTMLInputElement).value.trim();
  rememberToken(token);
  join();
});
document.getElementById('again')?.addEventListener('click', join);
addEventListener('beforeunload', (event) => {
  if (!view.isNeeded) return;
  event.preventDefault();
  // Older browsers look at returnValue instead.
  event.returnValue = true;
});
// Opening the same page by another link changes only the fragment and loads nothing, so the new token must be read here.
addEventListener('hashchange', () => {
  const other = takeToken();
  if (other === undefined || view.isTraining) return;
  token = other;
  join();
});

if (token === undefined) view.askForToken('Join the training', 'This page needs the token of the group.');
else join();
