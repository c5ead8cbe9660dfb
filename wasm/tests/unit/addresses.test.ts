import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encryptOf, parseAddress, tokenOf } from '../../src/addresses.js';
import { requestOf } from '../../src/join.js';
import type { Platform } from '../../src/platform.js';

test('links and WebSocket addresses say where to join', () => {
  assert.deepEqual(parseAddress('http://192.168.1.5:4711/#token=a%2Bb+c='), {
    host: '192.168.1.5',
    port: 4711,
    secure: false,
    token: 'a+b+c=',
    encrypt: undefined,
  });
  assert.deepEqual(parseAddress('ws://[fe80::1]:9/ring#encrypt=off'), {
    host: 'fe80::1',
    port: 9,
    secure: false,
    token: undefined,
    encrypt: false,
  });
  assert.deepEqual(parseAddress(new URL('wss://example.com')), {
    host: 'example.com',
    port: 443,
    secure: true,
    token: undefined,
    encrypt: undefined,
  });
  assert.equal(parseAddress('http://localhost').port, 80);
});

test('other addresses are refused, without their token', () => {
  for (const url of ['ftp://host/#token=secret', 'host:1234#token=secret', '', 'http://#token=secret']) {
    assert.throws(
      () => parseAddress(url),
      (error: Error) => error.name === 'InvalidArgument' && !error.message.includes('secret'),
    );
  }
});

test('a fragment may hold a token', () => {
  assert.equal(tokenOf('#token=x'), 'x');
  assert.equal(tokenOf('#a=b&token=x&c=d'), 'x');
  assert.equal(tokenOf('#mytoken=x'), undefined);
  assert.equal(tokenOf('#token='), undefined);
  assert.equal(tokenOf(''), undefined);
  assert.equal(tokenOf('#token=%'), '%');
  assert.equal(tokenOf('#token=%20x%0D%0A'), 'x');
  assert.equal(tokenOf('#token=%20%0A'), undefined);
});

test('a fragment may say whether links are encrypted', () => {
  assert.equal(encryptOf('#token=x&encrypt=off'), false);
  assert.equal(encryptOf('#encrypt=on&token=x'), true);
  assert.equal(encryptOf('#token=x'), undefined);
  assert.equal(encryptOf('#encrypt=maybe'), undefined);
});

test('a token that was pasted or read from a file loses the white space around it', () => {
  const tokenIn = (token?: string): string => requestOf({ name: 'test' } as Platform, { url: 'http://localhost/#token=link', token }).token;
  assert.equal(tokenIn('a token of a file\r\n'), 'a token of a file');
  assert.equal(tokenIn('\t pasted '), 'pasted');
  assert.equal(tokenIn(), 'link');
  assert.equal(tokenIn(''), '');
  assert.throws(() => tokenIn(' \n'), { name: 'InvalidArgument', message: /nothing but white space/ });
});
