import { isTypedArray } from './dtypes.js';
import { InvalidArgument } from './errors.js';
import { asTensor, describe, Tensor, type Values } from './tensors.js';

/** Named tensors, nested like a model: objects and arrays of objects and arrays, with values as leaves. */
export type Tree = Values | readonly Tree[] | { readonly [name: string]: Tree };

/** A tensor with its path: the names of the levels, outermost first, joined by dots ("layers.0.weight"). */
export interface Leaf {
  readonly name: string;
  readonly tensor: Tensor;
}

/**
 * Returns the leaves in the order of the objects' keys and the arrays' elements, which must be the same on every rank. Throws
 * `InvalidArgument` for a leaf without a name, for a name that occurs twice, and for anything that is neither a level nor values: a Map and
 * a Set are none.
 */
export function flatten(tree: Tree): Leaf[] {
  const leaves: Leaf[] = [];
  const names = new Set<string>();
  collect(tree, '', leaves, names);
  return leaves;
}

function collect(tree: Tree, name: string, leaves: Leaf[], names: Set<string>): void {
  if (isTypedArray(tree) || tree instanceof Tensor) {
    if (name === '') throw new InvalidArgument('a tree has names: give { weight: array } instead of the array alone');
    if (names.has(name)) throw new InvalidArgument(`two leaves of the tree are called '${name}'`);
    names.add(name);
    leaves.push({ name, tensor: asTensor(tree) });
    return;
  }
  if (typeof tree !== 'object' || tree === null || ArrayBuffer.isView(tree)) {
    throw new InvalidArgument(`${placeOf(name)} is neither a level nor a typed array nor a Tensor`);
  }
  if (!isLevel(tree)) {
    throw new InvalidArgument(
      `${placeOf(name)} is ${describe(tree)}, which has no named fields; give an object or an array, such as Object.fromEntries(map)`,
    );
  }
  for (const [level, below] of Object.entries(tree as { readonly [name: string]: Tree })) {
    if (level.split('.').includes('')) throw new InvalidArgument(`'${level}' below '${name}' is no name: a level of it is empty`);
    collect(below, name === '' ? level : `${name}.${level}`, leaves, names);
  }
}

function placeOf(name: string): string {
  return name === '' ? 'the tree' : `'${name}' of the tree`;
}

/** A Map, a Set, a Date and the like keep what they hold elsewhere than in fields, and would be taken for levels without leaves. */
function isLevel(value: object): boolean {
  if (Array.isArray(value)) return true;
  if (Symbol.iterator in value) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  // Plain objects of any realm: their prototype has none.
  const isPlain = prototype === null || (Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype as object, 'isPrototypeOf'));
  return isPlain || Object.keys(value).length > 0;
}
