import makeModule from 'ringlet-module';
import { nodePlatform } from './node_platform.js';
import type { Group } from './group.js';
import { type AloneOptions, aloneOn, type JoinOptions, joinOn } from './join.js';

export * from './api.js';

/**
 * Joins the group whose rank 0 listens at `options.url`, and waits until all ranks are there. Throws `InvalidArgument`,
 * `AuthenticationError`, `Timeout`, `PeerLost` or `ProtocolError` on failure.
 */
export function join(options: JoinOptions): Promise<Group> {
  return joinOn(nodePlatform, makeModule, options);
}

/** Makes a group of one, for programs that can also run alone. */
export function alone(options: AloneOptions = {}): Promise<Group> {
  return aloneOn(nodePlatform, makeModule, options);
}
