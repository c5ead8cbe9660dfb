import { scrypt } from '@noble/hashes/scrypt.js';

const LETTERS = '0123456789abcdefghjkmnpqrstvwxyz';
const STRONG = new RegExp(`^[${LETTERS}]{4}(-[${LETTERS}]{4}){6}$`);
const LEAST_DIFFERENT = 12;

/**
 * What native ranks make of a token (transport/crypto/strong_token.hpp): one that `ringlet token` has made stays, one that a person has made
 * up is stretched, so that nobody can guess it from a recording.
 */
export function strongToken(token: string): string {
  if (token === '' || (STRONG.test(token) && new Set(token).size > LEAST_DIFFERENT)) return token;
  const stretched = scrypt(token, 'ringlet token 1', { N: 2 ** 15, r: 8, p: 1, dkLen: 28 });
  const letters = Array.from(stretched, (byte) => LETTERS[byte % LETTERS.length]).join('');
  return (letters.match(/.{4}/g) ?? []).join('-');
}
