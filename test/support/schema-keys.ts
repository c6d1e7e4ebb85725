/** Each key of a schema that has a value, with its schema; of a list of sections, those of one entry: `watch.job`. */
import type * as v from 'valibot';

export interface SchemaKey {
  readonly name: string;
  readonly schema: v.GenericSchema;
}

interface Node {
  readonly kind?: string;
  readonly wrapped?: Node;
  readonly pipe?: readonly Node[];
  readonly item?: Node;
  readonly entries?: Readonly<Record<string, Node>>;
}

export const keysOfSchema = (schema: v.GenericSchema): SchemaKey[] => keysIn(schema as Node, []);

function keysIn(schema: Node, path: readonly string[]): SchemaKey[] {
  const { entries, item } = inner(schema);
  if (entries !== undefined) return Object.entries(entries).flatMap(([key, node]) => keysIn(node, [...path, key]));
  if (item !== undefined && inner(item).entries !== undefined) return keysIn(item, path);
  return [{ name: path.join('.'), schema: schema as v.GenericSchema }];
}

/** Without the wrappers for defaults, null, preparation and rules. */
function inner(schema: Node): Node {
  const next = schema.wrapped ?? schema.pipe?.findLast(({ kind }) => kind === 'schema');
  return next === undefined ? schema : inner(next);
}

/** Keys that hold a secret by their names; of notifications, also the address and the command. */
const IS_SECRET =
  /(?:password|token|secret|sessionCode|key|urlFile|urlCredential|userFile)(?:File|Command|Credential)?$|^notify\.(?:url|command)$/i;
const NO_SECRET = new Set(['fleet.schema', 'results.ssh.hostKeys']);

/** The names of the keys that hold or name a secret. */
export const secretKeysOf = (schema: v.GenericSchema): string[] =>
  keysOfSchema(schema)
    .map(({ name }) => name)
    .filter((name) => IS_SECRET.test(name) && !NO_SECRET.has(name))
    .sort();
