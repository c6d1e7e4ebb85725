/**
 * The five request types as one table (docs/interface.md 2 and 4.1), and the strict reading of an element tree by it.
 * TypeScript's types of the requests come from the same table.
 */
import { parseLong } from '../../job.ts';
import { FILE_TYPES, type Operation, PROTOCOLS } from '../../remote/soap/contract.ts';
import { ServiceFault } from '../refusals.ts';
import { type XmlElement, XSI } from './xml-tree.ts';

interface StringSchema {
  readonly kind: 'string';
}
interface LongSchema {
  readonly kind: 'long';
}
interface EnumerationSchema<V extends string = string> {
  readonly kind: 'enumeration';
  readonly values: readonly V[];
}
interface SequenceSchema<F extends readonly Field[] = readonly Field[]> {
  readonly kind: 'sequence';
  readonly fields: F;
}
type Schema = StringSchema | LongSchema | EnumerationSchema | SequenceSchema;

type Occurrence = 'required' | 'nillable' | 'optional' | 'unbounded';
interface Field<N extends string = string, O extends Occurrence = Occurrence, S = unknown> {
  readonly name: N;
  readonly occurrence: O;
  readonly schema: S;
}

/** Required; xsi:nil is refused. */
const required = <const N extends string, const S extends Schema>(name: N, schema: S) =>
  ({ name, occurrence: 'required', schema }) as const;
/** Required, may be nil. */
const nillable = <const N extends string, const S extends Schema>(name: N, schema: S) =>
  ({ name, occurrence: 'nillable', schema }) as const;
/** May be absent; xsi:nil is refused. */
const optional = <const N extends string, const S extends Schema>(name: N, schema: S) =>
  ({ name, occurrence: 'optional', schema }) as const;
/** Any number of times; each may be nil. */
const unbounded = <const N extends string, const S extends Schema>(name: N, schema: S) =>
  ({ name, occurrence: 'unbounded', schema }) as const;
const sequence = <const F extends readonly Field[]>(...fields: F) => ({ kind: 'sequence', fields }) as const;

const STRING = { kind: 'string' } as const;
const LONG = { kind: 'long' } as const;
const FILE_TYPE = { kind: 'enumeration', values: FILE_TYPES } as const;
const PROTOCOL = { kind: 'enumeration', values: PROTOCOLS } as const;

const TASK_FILE_OFFSET = sequence(
  nillable('submittedTaskInfoId', LONG),
  nillable('fileType', FILE_TYPE),
  nillable('offset', LONG),
);
const CREDENTIALS = sequence(
  optional('username', STRING),
  optional('privateKey', STRING),
  optional('publicKey', STRING),
);
const METHOD = sequence(
  optional('serverHostname', STRING),
  optional('sharedBasepath', STRING),
  nillable('protocol', PROTOCOL),
  optional('credentials', CREDENTIALS),
);

const REQUESTS = {
  GetFileTransferMethod: sequence(required('submittedJobInfoId', LONG), optional('sessionCode', STRING)),
  EndFileTransfer: sequence(
    required('submittedJobInfoId', LONG),
    optional('usedTransferMethod', METHOD),
    optional('sessionCode', STRING),
  ),
  DownloadPartsOfJobFilesFromCluster: sequence(
    required('submittedJobInfoId', LONG),
    optional('taskFileOffsets', sequence(unbounded('TaskFileOffsetExt', TASK_FILE_OFFSET))),
    optional('sessionCode', STRING),
  ),
  ListChangedFilesForJob: sequence(required('submittedJobInfoId', LONG), optional('sessionCode', STRING)),
  DownloadFileFromCluster: sequence(
    required('submittedJobInfoId', LONG),
    optional('relativeFilePath', STRING),
    optional('sessionCode', STRING),
  ),
} as const satisfies Record<Operation, SequenceSchema>;

/** What an element of the schema is read as; a long is canonical decimal text. */
type ValueOf<S> =
  S extends SequenceSchema<infer F>
    ? { readonly [E in F[number] as E['name']]: MemberOf<E> }
    : S extends EnumerationSchema<infer V>
      ? V
      : string;
type MemberOf<E> =
  E extends Field<string, infer O, infer S>
    ? O extends 'required'
      ? ValueOf<S>
      : O extends 'nillable'
        ? ValueOf<S> | null
        : O extends 'optional'
          ? ValueOf<S> | undefined
          : readonly (ValueOf<S> | null)[]
    : never;

/** The request of one operation. */
export type RequestOf<O extends Operation> = ValueOf<(typeof REQUESTS)[O]>;
/** A request with its operation. */
export type SoapRequest = { [O in Operation]: { readonly operation: O; readonly body: RequestOf<O> } }[Operation];
/** An entry of a DownloadParts request. */
export type TaskFileOffset = ValueOf<typeof TASK_FILE_OFFSET>;
/** FileTransferMethodExt as a client sends it back. */
export type UsedTransferMethod = ValueOf<typeof METHOD>;

/** Reads the element in the Body. Anything that the schema does not allow is a client fault that names it. */
export function readRequest(element: XmlElement, namespace: string): SoapRequest {
  const operation = Object.keys(REQUESTS).find((name): name is Operation => name === element.local);
  if (operation === undefined || element.uri !== namespace) {
    throw refused(`expected an operation of ${namespace}, found ${display(element, namespace)}`);
  }
  return { operation, body: readValue(element, REQUESTS[operation], namespace) } as SoapRequest;
}

function readValue(element: XmlElement, schema: Schema, namespace: string): unknown {
  const attribute = [...element.attributes.keys()].find((name) => !name.startsWith(`{${XSI}}`));
  if (attribute !== undefined) throw refused(`expected no attribute in ${element.local}, found ${attribute}`);
  if (schema.kind === 'sequence') return readSequence(element, schema, namespace);
  const child = element.children[0];
  if (child !== undefined) throw refused(`expected text in ${element.local}, found ${display(child, namespace)}`);
  if (schema.kind === 'string') return element.text;
  const text = element.text.replace(/^[ \t\r\n]+|[ \t\r\n]+$/g, '');
  if (schema.kind === 'long') {
    const long = parseLong(text);
    if (long === undefined) throw refused(`expected a long in ${element.local}, found "${text}"`);
    return long;
  }
  if (!schema.values.includes(text)) {
    throw refused(`expected one of ${schema.values.join(', ')} in ${element.local}, found "${text}"`);
  }
  return text;
}

function readSequence(element: XmlElement, schema: SequenceSchema, namespace: string): Record<string, unknown> {
  if (element.text.trim() !== '') throw refused(`expected elements in ${element.local}, found text`);
  const record: Record<string, unknown> = {};
  const children = [...element.children];
  let possible: string[] = [];
  const unexpected = () => {
    const next = children[0];
    const found = next === undefined ? `the end of ${element.local}` : display(next, namespace);
    return refused(`expected ${possible.join(' or ')}, found ${found} (in ${element.local})`);
  };
  for (const field of schema.fields as readonly Field<string, Occurrence, Schema>[]) {
    const values: unknown[] = [];
    possible.push(`element ${field.name}`);
    while (children[0]?.local === field.name && children[0].uri === namespace) {
      values.push(readMember(children[0], field, namespace));
      children.shift();
      if (field.occurrence !== 'unbounded') {
        possible = [];
        break;
      }
    }
    const needed = field.occurrence === 'required' || field.occurrence === 'nillable';
    if (needed && values.length === 0) throw unexpected();
    record[field.name] = field.occurrence === 'unbounded' ? values : values[0];
  }
  possible.push(`the end of ${element.local}`);
  if (children.length > 0) throw unexpected();
  return record;
}

function readMember(element: XmlElement, field: Field<string, Occurrence, Schema>, namespace: string): unknown {
  if (!element.nil) return readValue(element, field.schema, namespace);
  if (field.occurrence === 'required' || field.occurrence === 'optional') {
    throw refused(`expected a value in ${field.name}, found xsi:nil, which is not allowed there`);
  }
  if (element.children.length > 0 || element.text !== '') {
    throw refused(`expected an empty element ${field.name} with xsi:nil, found content`);
  }
  return null;
}

function display(element: XmlElement, namespace: string): string {
  return element.uri === namespace ? `element ${element.local}` : `element {${element.uri}}${element.local}`;
}

/** A client fault in the words of ASP.NET. */
export function refused(what: string): ServiceFault {
  return new ServiceFault(`Server was unable to read request. ---> ${what}`, 'client');
}
