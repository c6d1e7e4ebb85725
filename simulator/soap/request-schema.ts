/**
 * The request types of both services as one table (docs/dev/soap.md 2, 4.1 and 10.1), and the strict reading of an element tree by it.
 * TypeScript's types of the requests come from the same table.
 */
import { parseLong } from '../../src/job.ts';
import type { Operation } from '../../src/operations.ts';
import { FILE_TYPES, PROTOCOLS, SERVICES, type ServiceName } from '../../src/remote/soap/contract.ts';
import { ServiceFault } from '../refusals.ts';
import { type XmlElement, XSI } from './xml-tree.ts';

/** Text, a 64-bit number, one of some words, or a sequence of elements. */
type Schema = 'string' | 'long' | readonly string[] | Sequence;
/**
 * Elements by their names, in their order. Each is required and has a value, unless its name ends with a mark:
 * `?` it may be absent, but not xsi:nil; `~` it may be xsi:nil, but not absent; `*` any number of times, each may be nil.
 */
interface Sequence {
  readonly [name: string]: Schema;
}

const TASK_FILE_OFFSET = { 'submittedTaskInfoId~': 'long', 'fileType~': FILE_TYPES, 'offset~': 'long' } as const;
const METHOD = {
  'serverHostname?': 'string',
  'sharedBasepath?': 'string',
  'protocol~': PROTOCOLS,
  'credentials?': { 'username?': 'string', 'privateKey?': 'string', 'publicKey?': 'string' },
} as const;

const REQUESTS = {
  GetFileTransferMethod: { submittedJobInfoId: 'long', 'sessionCode?': 'string' },
  EndFileTransfer: { submittedJobInfoId: 'long', 'usedTransferMethod?': METHOD, 'sessionCode?': 'string' },
  DownloadPartsOfJobFilesFromCluster: {
    submittedJobInfoId: 'long',
    'taskFileOffsets?': { 'TaskFileOffsetExt*': TASK_FILE_OFFSET },
    'sessionCode?': 'string',
  },
  ListChangedFilesForJob: { submittedJobInfoId: 'long', 'sessionCode?': 'string' },
  DownloadFileFromCluster: { submittedJobInfoId: 'long', 'relativeFilePath?': 'string', 'sessionCode?': 'string' },
  GetCurrentInfoForJob: { submittedJobInfoId: 'long', 'sessionCode?': 'string' },
  ListJobsForCurrentUser: { 'sessionCode?': 'string' },
} as const satisfies Record<Operation, Sequence>;

/** What an element of the schema is read as; a long is canonical decimal text. */
type ValueOf<S> = S extends string
  ? string
  : S extends readonly (infer Word)[]
    ? Word
    : { readonly [Name in keyof S as WithoutMark<Name>]: MemberOf<Name, ValueOf<S[Name]>> };
type WithoutMark<Name> = Name extends `${infer Plain}?` | `${infer Plain}~` | `${infer Plain}*` ? Plain : Name;
type MemberOf<Name, Value> = Name extends `${string}?`
  ? Value | undefined
  : Name extends `${string}~`
    ? Value | null
    : Name extends `${string}*`
      ? readonly (Value | null)[]
      : Value;

/** A request of one of these operations. */
export type RequestOf<Of extends Operation> = {
  [O in Of]: { readonly operation: O; readonly body: ValueOf<(typeof REQUESTS)[O]> };
}[Of];
/** A request with its operation. */
export type SoapRequest = RequestOf<Operation>;
/** An entry of a DownloadParts request. */
export type TaskFileOffset = ValueOf<typeof TASK_FILE_OFFSET>;
/** FileTransferMethodExt as a client sends it back. */
export type UsedTransferMethod = ValueOf<typeof METHOD>;

/** The job that a request is about. */
export function jobIdOf({ body }: SoapRequest): string | undefined {
  return 'submittedJobInfoId' in body ? body.submittedJobInfoId : undefined;
}

/** The entries of a DownloadParts request; none for another one. */
export function entriesOf(request: SoapRequest): readonly (TaskFileOffset | null)[] {
  if (request.operation !== 'DownloadPartsOfJobFilesFromCluster') return [];
  return request.body.taskFileOffsets?.TaskFileOffsetExt ?? [];
}

/** What a request has to be of. */
export interface RequestedService {
  readonly namespace: string;
  readonly service: ServiceName;
}

/** Reads the element in the Body. Anything that the schema does not allow is a client fault that names it. */
export function readRequest(element: XmlElement, { namespace, service }: RequestedService): SoapRequest {
  const operation = SERVICES[service].find((name: Operation) => name === element.local);
  if (operation === undefined || element.uri !== namespace) {
    throw refused(`expected an operation of ${namespace}, found ${display(element, namespace)}`);
  }
  return { operation, body: readValue(element, REQUESTS[operation], namespace) } as SoapRequest;
}

function readValue(element: XmlElement, schema: Schema, namespace: string): unknown {
  const attribute = [...element.attributes.keys()].find((name) => !name.startsWith(`{${XSI}}`));
  if (attribute !== undefined) throw refused(`expected no attribute in ${element.local}, found ${attribute}`);
  if (isSequence(schema)) return readSequence(element, schema, namespace);
  const child = element.children[0];
  if (child !== undefined) throw refused(`expected text in ${element.local}, found ${display(child, namespace)}`);
  if (schema === 'string') return element.text;
  const text = element.text.replace(/^[ \t\r\n]+|[ \t\r\n]+$/g, '');
  if (schema === 'long') {
    const long = parseLong(text);
    if (long === undefined) throw refused(`expected a long in ${element.local}, found "${text}"`);
    return long;
  }
  if (!schema.includes(text)) {
    throw refused(`expected one of ${schema.join(', ')} in ${element.local}, found "${text}"`);
  }
  return text;
}

const isSequence = (schema: Schema): schema is Sequence => typeof schema === 'object' && !Array.isArray(schema);

function readSequence(element: XmlElement, schema: Sequence, namespace: string): Record<string, unknown> {
  if (element.text.trim() !== '') throw refused(`expected elements in ${element.local}, found text`);
  const record: Record<string, unknown> = {};
  const children = [...element.children];
  let possible: string[] = [];
  const unexpected = () => {
    const next = children[0];
    const found = next === undefined ? `the end of ${element.local}` : display(next, namespace);
    return refused(`expected ${possible.join(' or ')}, found ${found} (in ${element.local})`);
  };
  for (const [key, inner] of Object.entries(schema)) {
    const mark = /[?~*]$/.exec(key)?.[0];
    const name = mark === undefined ? key : key.slice(0, -1);
    const values: unknown[] = [];
    possible.push(`element ${name}`);
    while (children[0]?.local === name && children[0].uri === namespace) {
      const isNil = readNil(children[0], mark === '~' || mark === '*');
      values.push(isNil ? null : readValue(children[0], inner, namespace));
      children.shift();
      if (mark !== '*') {
        possible = [];
        break;
      }
    }
    if ((mark === undefined || mark === '~') && values.length === 0) throw unexpected();
    record[name] = mark === '*' ? values : values[0];
  }
  possible.push(`the end of ${element.local}`);
  if (children.length > 0) throw unexpected();
  return record;
}

function readNil(element: XmlElement, isAllowed: boolean): boolean {
  if (!element.nil) return false;
  if (!isAllowed) throw refused(`expected a value in ${element.local}, found xsi:nil, which is not allowed there`);
  if (element.children.length > 0 || element.text !== '') {
    throw refused(`expected an empty element ${element.local} with xsi:nil, found content`);
  }
  return true;
}

function display(element: XmlElement, namespace: string): string {
  return element.uri === namespace ? `element ${element.local}` : `element {${element.uri}}${element.local}`;
}

/** A client fault in the words of ASP.NET. */
export function refused(what: string): ServiceFault {
  return new ServiceFault(`Server was unable to read request. ---> ${what}`, 'client');
}
