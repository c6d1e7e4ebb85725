/** The WSDL that requests over SOAP are written by, and what is not sent. How they are written: test/remote/printed-soap.txt. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { wsdlOf } from '../../../src/remote/soap/contract.ts';
import { textArgument, transferMethodArgument } from '../../../src/remote/soap/envelope.ts';
import { createRemote } from '../../support/wire-remote.ts';

const DOCUMENT = readFileSync('docs/dev/soap.md', 'utf8');
/** By the name of each type of docs/dev/soap.md: what is said of it. */
const TYPES = [...DOCUMENT.matchAll(/^### (?:2|10)\.\d (\w+Ext)\n([^#]+)/gm)].map(([, ...type]) => type);
const WSDLS = (['FileTransferWs', 'JobManagementWs'] as const).map((service) =>
  wsdlOf({ namespace: 'http://m/?a&b', url: 'https://h/<x>"', service }),
);

/** What stands within the element of a schema that begins so. */
const within = (start: string, end: string) => WSDLS.join('').split(start)[1]?.split(end)[0] ?? '';

/** The elements of a sequence in their order: name, type, and what of them may be missing. */
const elementsOf = (sequence: string) =>
  [...sequence.matchAll(/<s:element (.*?)\/>/g)].map(([, text = '']) => {
    const found = Object.fromEntries([...text.matchAll(/(\w+)="(.*?)"/g)].map(([, key, value]) => [key, value]));
    const words = [found['minOccurs'] === '1' ? 'required' : 'optional', ...(found['nillable'] ? ['may be nil'] : [])];
    const type = String(found['type']).replace(/^\w+:/, '').replace('anyType', 'any');
    return [found['name'], type, [...words, ...(found['maxOccurs'] === '1' ? [] : ['many'])].join(', ')];
  });

test('the WSDL has each type as it is documented', () => {
  expect(TYPES).toHaveLength(8);
  for (const [name = '', text = ''] of TYPES) {
    const rows = [...text.matchAll(/^\| `(\w+)` \| (\w+) \| ([^|]+?) \|/gm)].map(([, ...row]) => row);
    const type = within(`<s:complexType name="${name}">`, '</s:complexType>');
    const base = /<s:extension base="tns:(\w+)"/.exec(type)?.[1];
    const inherited = base === undefined ? '' : within(`<s:complexType name="${base}">`, '</s:complexType>');
    expect(elementsOf(inherited + type), name).toEqual(rows);
    if (rows.length > 0) continue;
    const values = within(`<s:simpleType name="${name}">`, '</s:simpleType>').match(/(?<=enumeration value=")\w+/g);
    expect(values, name).toEqual(text.match(/(?<=`)\w+(?=`)/g));
  }
  const arrays = WSDLS.join('').match(/(?<=complexType name="ArrayOf)\w+/g);
  expect(arrays).toHaveLength(5);
  for (const of of arrays ?? []) {
    const element = of.replace(/^String$/, 'string');
    const found = elementsOf(within(`<s:complexType name="ArrayOf${of}">`, '</s:complexType>'));
    expect(found).toEqual([[element, element, 'optional, may be nil, many']]);
  }
});

test('the WSDL has each documented operation, in both versions of SOAP, at the address', async () => {
  const operations = /^\| (\w+) \| ((?:`\w+`[^|`]*)*`sessionCode`) \| ([^|]+) \|$/gm;
  const documented = [...DOCUMENT.matchAll(operations)].map(([, name = '', takes = '', gives = '']) => {
    const elements = (text: string) =>
      [...text.matchAll(/`(\w+)`(?: \((\w+), optional\)|: (\w+), optional)?/g)].map(([, one, ...types]) =>
        one === 'submittedJobInfoId'
          ? [one, 'long', 'required']
          : [one, types.find((type) => type !== undefined) ?? 'string', 'optional'],
      );
    return [name, `http://m/?a&b${name}`, 'https://h/<x>"', elements(takes), elements(gives)];
  });
  expect(documented).toHaveLength(7);
  const { WSDL } = await import('soap/lib/wsdl/index.js');
  const read = WSDLS.map((text) => new WSDL(text, 'http://unused/', {}));
  await Promise.all(read.map((wsdl) => new Promise((resolve) => wsdl.onReady(resolve))));
  const sequenceOf = (element = '') => elementsOf(within(`<s:element name="${element}">`, '</s:sequence>'));
  for (const version of ['Soap', 'Soap12']) {
    const described = read.flatMap(({ definitions }) =>
      Object.entries(definitions.services).flatMap(([service, { ports }]) => {
        const port = ports[`${service}${version}`];
        return Object.values(port?.binding.methods ?? {}).map(({ $name, soapAction, input, output }) => {
          const elements = [sequenceOf(input.$name), sequenceOf(output.$name)];
          return [$name, soapAction, port?.location, ...elements];
        });
      }),
    );
    expect(described, version).toEqual(documented);
  }
});

test('what is not known of a transfer is omitted at its end, but its protocol is nil', () => {
  const nothing = { serverHostname: null, sharedBasepath: null, protocol: null, credentials: null };
  expect(transferMethodArgument(nothing)).toEqual({ protocol: null });
  const credentials = { username: 'u', privateKey: null, publicKey: 'k' };
  const known = { protocol: null, credentials: { username: 'u', publicKey: 'k' } };
  expect(transferMethodArgument({ ...nothing, credentials })).toEqual(known);
});

test('half of a surrogate pair is not sent', () => {
  const refused = { code: 'usage', message: expect.stringContaining('the name contains') };
  expect(() => textArgument('a\uD800b', 'name')).toThrow(expect.objectContaining(refused));
});

test.each(['http://x/"><a', 'urn: x', 'urn:é', 'urn:&amp;', ''])(
  'nothing is sent into the namespace %j',
  (namespace) => {
    const refused = expect.objectContaining({ code: 'config' });
    expect(() => createRemote('http://127.0.0.1:9/', { namespace })).toThrow(refused);
  },
);
