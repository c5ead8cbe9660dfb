import { encryptOf, tokenOf } from '../src/addresses.js';

const key = 'ringlet-token';
const encryptKey = 'ringlet-encrypt';

/**
 * The token from the link's fragment, which is taken out of the address bar, or else the one that this tab had before it was reloaded.
 * Undefined where there is none.
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

/** What the link that brought the token said of encryption, as a fragment; empty where it said nothing. */
export function encryption(): string {
  const encrypt = stored(() => sessionStorage.getItem(encryptKey)) ?? undefined;
  return encrypt === undefined ? '' : `#encrypt=${encrypt}`;
}

/** Keeps it for as long as the tab is open. */
export function rememberToken(token: string): void {
  stored(() => sessionStorage.setItem(key, token));
}

export function forgetToken(): void {
  stored(() => sessionStorage.removeItem(key));
}

// Browsers that are told to keep no data throw at each use.
function stored<T>(use: () => T): T | undefined {
  try {
    return use();
  } catch {
    return undefined;
  }
}
