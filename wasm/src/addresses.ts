import { InvalidArgument } from './errors.js';

/** Where to join a group: the address of the WebSocket, and the token if the link had one. */
export interface Address {
  readonly host: string;
  readonly port: number;
  /** Whether it is wss instead of ws. */
  readonly secure: boolean;
  readonly token: string | undefined;
  /** The link's setting for encryption; undefined if it has none. */
  readonly encrypt: boolean | undefined;
}

const schemes: Readonly<Record<string, { secure: boolean; port: number }>> = {
  'ws:': { secure: false, port: 80 },
  'http:': { secure: false, port: 80 },
  'wss:': { secure: true, port: 443 },
  'https:': { secure: true, port: 443 },
};

/**
 * Reads the link that `ringlet serve` prints ("http://192.168.1.5:4711/#token=..."), or the same with ws. Throws `InvalidArgument` for
 * anything else.
 */
export function parseAddress(url: string | URL): Address {
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    throw new InvalidArgument(`'${withoutFragment(String(url))}' is no address; give a link such as http://192.168.1.5:4711/`);
  }
  const scheme = schemes[parsed.protocol];
  if (scheme === undefined || parsed.hostname === '' || parsed.port === '0') {
    throw new InvalidArgument(
      `'${withoutFragment(parsed.href)}' is not an address of http or ws; give a link such as http://192.168.1.5:4711/`,
    );
  }
  return {
    host: parsed.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: parsed.port === '' ? scheme.port : Number(parsed.port),
    secure: scheme.secure,
    token: tokenOf(parsed.hash),
    encrypt: encryptOf(parsed.hash),
  };
}

/**
 * Returns the same link to another rank, which knows the same token: `place` is "host:port". Undefined for one of https, since what encrypts
 * it stands at its own address alone.
 */
export function linkAt(url: string | URL, place: string): string | undefined {
  const link = new URL(url);
  if (schemes[link.protocol]?.secure !== false) return undefined;
  link.host = place;
  return link.href;
}

/** Returns the token in a link's fragment ("#token=..."); undefined if there is none. */
export function tokenOf(fragment: string): string | undefined {
  // URLSearchParams is not used, because it reads a plus as a space.
  const encoded = /(?:^#?|&)token=([^&]+)/.exec(fragment)?.[1];
  if (encoded === undefined) return undefined;
  try {
    return trimToken(decodeURIComponent(encoded)) || undefined;
  } catch {
    return encoded;
  }
}

/** Leaves out the white space around a token that was pasted or read from a file, as native ranks do (native/token.cpp). */
export function trimToken(token: string): string {
  return token.replace(/^[ \t\r\n]+|[ \t\r\n]+$/g, '');
}

/** Returns a fragment's setting for encryption ("&encrypt=off"); undefined if it has none. */
export function encryptOf(fragment: string): boolean | undefined {
  const setting = /(?:^#?|&)encrypt=(on|off)(?:&|$)/.exec(fragment)?.[1];
  return setting === undefined ? undefined : setting === 'on';
}

// A token must not get into messages and logs.
function withoutFragment(url: string): string {
  return url.replace(/#.*$/s, '');
}
