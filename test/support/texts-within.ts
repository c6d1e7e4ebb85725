/** What an object holds, private fields and the entries of maps and sets included: to see that something is forgotten. */
import inspector from 'node:inspector';

type Value = inspector.Runtime.RemoteObject;

/** Not looked into: code, bytes, and what a library wraps. */
const CLOSED = new Set(['typedarray', 'arraybuffer', 'dataview', 'proxy', 'promise', 'regexp']);
const ROOT = '__textsWithinRoot';
const SEEN = '__textsWithinSeen';

/** The paths from `root` to texts that contain `text`, as values, names of properties or keys of maps. */
export function textsWithin(root: object, text: string): string[] {
  const session = new inspector.Session();
  session.connect();
  const found: string[] = [];
  const globals = globalThis as Record<string, unknown>;
  globals[ROOT] = root;
  globals[SEEN] = new WeakSet();
  const look = (value: Value, path: string): void => {
    if (value.type === 'string' && String(value.value).includes(text)) found.push(`${path} = ${String(value.value)}`);
    const { objectId, type, subtype = '' } = value;
    if (objectId === undefined || type !== 'object' || CLOSED.has(subtype)) return;
    const isNew = `function () { const seen = globalThis.${SEEN}; return !seen.has(this) && Boolean(seen.add(this)); }`;
    const call = { objectId, functionDeclaration: isNew, returnByValue: true };
    session.post('Runtime.callFunctionOn', call, (_, answer: inspector.Runtime.CallFunctionOnReturnType) => {
      if (subtype !== 'internal#entry' && answer.result.value !== true) return;
      session.post('Runtime.getProperties', { objectId, ownProperties: true }, (__, given) => lookInto(given, path));
    });
  };
  const lookInto = (given: Given, path: string): void => {
    const inner = (given.internalProperties ?? []).filter(({ name }) => name === '[[Entries]]');
    for (const { name, value } of [...given.result, ...(given.privateProperties ?? []), ...inner]) {
      if (name.includes(text)) found.push(`${path}.${name}`);
      if (value !== undefined && name !== '__proto__') look(value, `${path}.${name}`);
    }
  };
  try {
    session.post('Runtime.evaluate', { expression: `globalThis.${ROOT}` }, (_, { result }) => look(result, ''));
  } finally {
    delete globals[ROOT];
    delete globals[SEEN];
    session.disconnect();
  }
  return found;
}

/** The types of Node.js do not know the private ones. */
type Given = inspector.Runtime.GetPropertiesReturnType & {
  readonly privateProperties?: readonly { readonly name: string; readonly value?: Value }[];
};
