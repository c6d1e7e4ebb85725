/** How much long-lived objects remember: the lengths of all Maps, Sets and lists that their fields lead to. */
import { Session } from 'node:inspector';

/** By class and field, of all objects of a class together. */
export type Lengths = ReadonlyMap<string, number>;

const HERE = '__objectOfTheSimulation';
const FOUND = '__fieldsOfTheSimulation';
const shared = globalThis as unknown as Record<string, unknown>;

interface Field {
  readonly name: string;
  readonly value?: { readonly objectId?: string };
}

/** Follows the fields of `root`, but none of `others`. */
export function lengthsOf(root: object, others: readonly object[]): Lengths {
  const lengths = new Map<string, number>();
  const seen = new Set<object>(others);
  const inspector = new Session();
  inspector.connect();
  try {
    const waiting: (readonly [name: string, value: unknown])[] = [[root.constructor.name, root]];
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      const [name, value] = next;
      if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value) || seen.has(value)) continue;
      seen.add(value);
      const items = itemsOf(value);
      if (items !== undefined) {
        lengths.set(name, (lengths.get(name) ?? 0) + items.length);
        for (const item of items) waiting.push([`${name}[]`, item]);
        continue;
      }
      const ofClass = value.constructor?.name ?? 'Object';
      const isOfClass = ofClass !== 'Object';
      const fields = [...Object.entries(value), ...(isOfClass ? privateFieldsOf(inspector, value) : [])];
      for (const [field, inner] of fields) waiting.push([`${isOfClass ? ofClass : name}.${field}`, inner]);
    }
    return lengths;
  } finally {
    inspector.disconnect();
  }
}

function itemsOf(value: object): readonly unknown[] | undefined {
  if (value instanceof Map) return [...value.values()];
  return value instanceof Set || Array.isArray(value) ? [...value] : undefined;
}

function privateFieldsOf(inspector: Session, of: object): [name: string, value: unknown][] {
  const post = <Result>(method: string, parameters: object): Result => {
    let answer: Result | undefined;
    inspector.post(method, parameters, (error, result) => {
      if (error !== null) throw error;
      answer = result as Result;
    });
    return answer as Result;
  };
  shared[HERE] = of;
  const { result } = post<{ readonly result: { readonly objectId: string } }>('Runtime.evaluate', { expression: HERE });
  const { privateProperties = [] } = post<{ readonly privateProperties?: readonly Field[] }>('Runtime.getProperties', {
    ...{ objectId: result.objectId, ownProperties: true },
  });
  const fields = privateProperties.filter(({ value }) => value?.objectId !== undefined);
  // An object of the inspector is only its name: the objects themselves are handed to a function.
  const functionDeclaration = `function (...values) { globalThis.${FOUND} = values; }`;
  const values = fields.map(({ value }) => ({ objectId: value?.objectId }));
  post('Runtime.callFunctionOn', { objectId: result.objectId, functionDeclaration, arguments: values });
  const found = shared[FOUND] as readonly unknown[];
  delete shared[HERE];
  delete shared[FOUND];
  return fields.map(({ name }, index) => [name, found[index]]);
}
