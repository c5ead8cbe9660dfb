import { encryptOf, tokenOf } from '../src/addresses.js';

const key = 'ringlet-token';
const encryptKey = 'ringlet-encrypt';

/**
 * Returns the token from the link's fragment, and removes it from the address bar. If there is none, returns the one that this tab had
 * before it was reloaded, or undefined.
 */
export function takeToken(): string | undefined {
  const token = tokenOf(location.hash);
  if (token === undefined) return stored(() => sessionStorage.getItem(key)) ?? undefined;
  const encrypt = encryptOf(location.hash);
  stored(() =>
    encrypt === undefined ? sessionStorage.removeItem(encryptKey) : sessionStorage.setItem(encryptKey, encrypt ? 'on' : 'off'),
  );
  history.replaceState(null, '', location.pathname + location.search);
  rememberToken(token);
  return token;
}

/** Returns the setting for encryption in the link that brought the token, as a fragment; empty if the link had none. */
export function encryption(): string {
  const encrypt = stored(() => sessionStorage.getItem(encryptKey)) ?? undefined;
  return encrypt === undefined ? '' : `#encrypt=${encrypt}`;
}

/** Keeps the token as long as the tab is open. */
export function rememberToken(token: string): void {
  stored(() => sessionStorage.setItem(key, token));
}

export function forgetToken(): void {
  stored(() => sessionStorage.removeItem(key));
}

// Browsers that are set to keep no data throw at each use of the storage.
function stored<T>(use: () => T): T | undefined {
  try {
    return use();
  } catch {
    return undefined;
  }
}
