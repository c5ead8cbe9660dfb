import { InvalidArgument } from './errors.js';

/** Where a group is joined: the WebSocket's address, and the token where the link carried one. */
export interface Address {
  readonly host: string;
  readonly port: number;
  /** wss instead of ws. */
  readonly secure: boolean;
  readonly token: string | undefined;
  /** As the link says. */
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

/** The token in a link's fragment ("#token=..."); undefined where there is none. */
export function tokenOf(fragment: string): string | undefined {
  // Not by URLSearchParams, for which a plus is a space.
  const encoded = /(?:^#?|&)token=([^&]+)/.exec(fragment)?.[1];
  if (encoded === undefined) return undefined;
  try {
    return decodeURIComponent(encoded);
  } catch {
    return encoded;
  }
}

/** What a link's fragment says of encryption ("&encrypt=off"); undefined where it says nothing. */
export function encryptOf(fragment: string): boolean | undefined {
  const setting = /(?:^#?|&)encrypt=(on|off)(?:&|$)/.exec(fragment)?.[1];
  return setting === undefined ? undefined : setting === 'on';
}

// A token must not get into messages and logs.
function withoutFragment(url: string): string {
  return url.replace(/#.*$/s, '');
}
