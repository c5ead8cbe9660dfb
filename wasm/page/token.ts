import { encryptOf, tokenOf } from '../src/addresses.js';

const tokenKey = 'ringlet-token';
const encryptKey = 'ringlet-encrypt';
// The values that this page has set, for browsers that store nothing.
const kept = new Map<string, string | undefined>();

/**
 * Returns the token from the link's fragment, and removes it from the address bar. If there is none, returns the one that this tab had
 * before it was reloaded, or undefined.
 */
export function takeToken(): string | undefined {
  const token = tokenOf(location.hash);
  if (token === undefined) return recall(tokenKey);
  const encrypt = encryptOf(location.hash);
  keep(encryptKey, encrypt === undefined ? undefined : encrypt ? 'on' : 'off');
  history.replaceState(null, '', location.pathname + location.search);
  rememberToken(token);
  return token;
}

/** Returns the setting for encryption in the link that brought the token, as a fragment; empty if the link had none. */
export function encryption(): string {
  const encrypt = recall(encryptKey);
  return encrypt === undefined ? '' : `#encrypt=${encrypt}`;
}

/** Keeps the token as long as the tab is open. */
export function rememberToken(token: string): void {
  keep(tokenKey, token);
}

export function forgetToken(): void {
  keep(tokenKey, undefined);
}

function keep(key: string, value: string | undefined): void {
  kept.set(key, value);
  stored(() => (value === undefined ? sessionStorage.removeItem(key) : sessionStorage.setItem(key, value)));
}

function recall(key: string): string | undefined {
  return kept.has(key) ? kept.get(key) : (stored(() => sessionStorage.getItem(key)) ?? undefined);
}

// Browsers that are set to keep no data throw at each use of the storage.
function stored<T>(use: () => T): T | undefined {
  try {
    return use();
  } catch {
    return undefined;
  }
}
