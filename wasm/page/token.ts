import { tokenOf } from '../src/addresses.js';

const key = 'ringlet-token';

/**
 * The token from the link's fragment, which is taken out of the address bar, or else the one that this tab had before it was reloaded.
 * Undefined where there is none.
 */
export function takeToken(): string | undefined {
  const token = tokenOf(location.hash);
  if (token === undefined) return stored(() => sessionStorage.getItem(key)) ?? undefined;
  history.replaceState(null, '', location.pathname + location.search);
  rememberToken(token);
  return token;
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
