/**
 * The contract of FileTransferWs and JobManagementWs: the WSDL of each (docs/dev/soap.md 2, 4.1 and 10) for one
 * server, with element order, nillability and multiplicity of docs/dev/soap.md.
 */
import type { LiveFileName } from '../../job.ts';
import { FILE_TRANSFER_OPERATIONS, JOB_OPERATIONS, type Operation } from '../../operations.ts';

export const SOAP_NAMESPACES = {
  '1.1': 'http://schemas.xmlsoap.org/soap/envelope/',
  '1.2': 'http://www.w3.org/2003/05/soap-envelope',
} as const;
export type SoapVersion = keyof typeof SOAP_NAMESPACES;

export const SERVICES = { FileTransferWs: FILE_TRANSFER_OPERATIONS, JobManagementWs: JOB_OPERATIONS } as const;
export type ServiceName = keyof typeof SERVICES;

export interface ContractOptions {
  readonly namespace: string;
  readonly url: string;
  readonly service?: ServiceName;
}

export function serviceOf(operation: Operation): ServiceName {
  const ofJobs: readonly string[] = SERVICES.JobManagementWs;
  return ofJobs.includes(operation) ? 'JobManagementWs' : 'FileTransferWs';
}

/** SynchronizableFilesExt (docs/dev/soap.md 2.4). */
export const FILE_TYPES = ['LogFile', 'ProgressFile', 'StandardErrorFile', 'StandardOutputFile'] as const;
export type FileType = (typeof FILE_TYPES)[number];

export const FILE_TYPE_OF: Readonly<Record<LiveFileName, FileType>> = {
  stdout: 'StandardOutputFile',
  stderr: 'StandardErrorFile',
  log: 'LogFile',
  progress: 'ProgressFile',
};

/** FileTransferProtocolExt (docs/dev/soap.md 2.2). */
export const PROTOCOLS = ['NetworkShare', 'SftpScp'] as const;

/** The named states of docs/dev/soap.md 10.4; the contract accepts any text. */
export const JOB_STATES = ['Configuring', 'Submitted', 'Queued', 'Running', 'Finished', 'Failed', 'Canceled'] as const;

/** The action of an operation: the namespace followed directly by its name (docs/dev/soap.md 4.1). */
export function actionOf(namespace: string, operation: Operation): string {
  return `${namespace}${operation}`;
}

const escapeXml = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

const required = (name: string, type: string) =>
  `<s:element minOccurs="1" maxOccurs="1" name="${name}" type="${type}"/>`;
const nillable = (name: string, type: string) =>
  `<s:element minOccurs="1" maxOccurs="1" name="${name}" nillable="true" type="${type}"/>`;
const optional = (name: string, type: string) =>
  `<s:element minOccurs="0" maxOccurs="1" name="${name}" type="${type}"/>`;
const unbounded = (name: string, type: string) =>
  `<s:element minOccurs="0" maxOccurs="unbounded" name="${name}" nillable="true" type="${type}"/>`;

const complexType = (name: string, ...elements: string[]) =>
  `<s:complexType name="${name}"><s:sequence>${elements.join('')}</s:sequence></s:complexType>`;
const enumeration = (name: string, values: readonly string[]) =>
  `<s:simpleType name="${name}"><s:restriction base="s:string">${values
    .map((value) => `<s:enumeration value="${value}"/>`)
    .join('')}</s:restriction></s:simpleType>`;
const wrapper = (name: string, ...elements: string[]) =>
  `<s:element name="${name}"><s:complexType><s:sequence>${elements.join('')}</s:sequence></s:complexType></s:element>`;

interface Signature {
  /** Elements of the request before the session; the job if omitted. */
  readonly takes?: string;
  readonly gives?: string;
}

const JOB_ID = required('submittedJobInfoId', 's:long');

const SIGNATURES: Readonly<Record<Operation, Signature>> = {
  GetFileTransferMethod: { gives: 'tns:FileTransferMethodExt' },
  EndFileTransfer: { takes: JOB_ID + optional('usedTransferMethod', 'tns:FileTransferMethodExt') },
  DownloadPartsOfJobFilesFromCluster: {
    takes: JOB_ID + optional('taskFileOffsets', 'tns:ArrayOfTaskFileOffsetExt'),
    gives: 'tns:ArrayOfJobFileContentExt',
  },
  ListChangedFilesForJob: { gives: 'tns:ArrayOfString' },
  DownloadFileFromCluster: { takes: JOB_ID + optional('relativeFilePath', 's:string'), gives: 's:base64Binary' },
  GetCurrentInfoForJob: { gives: 'tns:SubmittedJobInfoExt' },
  ListJobsForCurrentUser: { takes: '', gives: 'tns:ArrayOfSubmittedJobInfoExt' },
};

function wrappers(operation: Operation): string {
  const { takes = JOB_ID, gives } = SIGNATURES[operation];
  const result = gives === undefined ? '' : optional(`${operation}Result`, gives);
  return [wrapper(operation, takes, optional('sessionCode', 's:string')), wrapper(`${operation}Response`, result)].join(
    '\n',
  );
}

const TYPES: Readonly<Record<ServiceName, readonly string[]>> = {
  FileTransferWs: [
    complexType(
      'FileTransferMethodExt',
      optional('serverHostname', 's:string'),
      optional('sharedBasepath', 's:string'),
      nillable('protocol', 'tns:FileTransferProtocolExt'),
      optional('credentials', 'tns:AsymmetricKeyCredentialsExt'),
    ),
    enumeration('FileTransferProtocolExt', PROTOCOLS),
    complexType('AuthenticationCredentialsExt', optional('username', 's:string')),
    `<s:complexType name="AsymmetricKeyCredentialsExt"><s:complexContent mixed="false"><s:extension base="tns:AuthenticationCredentialsExt"><s:sequence>${[
      optional('privateKey', 's:string'),
      optional('publicKey', 's:string'),
    ].join('')}</s:sequence></s:extension></s:complexContent></s:complexType>`,
    complexType('ArrayOfTaskFileOffsetExt', unbounded('TaskFileOffsetExt', 'tns:TaskFileOffsetExt')),
    complexType(
      'TaskFileOffsetExt',
      nillable('submittedTaskInfoId', 's:long'),
      nillable('fileType', 'tns:SynchronizableFilesExt'),
      nillable('offset', 's:long'),
    ),
    enumeration('SynchronizableFilesExt', FILE_TYPES),
    complexType('ArrayOfJobFileContentExt', unbounded('JobFileContentExt', 'tns:JobFileContentExt')),
    complexType(
      'JobFileContentExt',
      optional('content', 's:string'),
      optional('relativePath', 's:string'),
      nillable('offset', 's:long'),
      nillable('fileType', 'tns:SynchronizableFilesExt'),
      nillable('submittedTaskInfoId', 's:long'),
    ),
    complexType('ArrayOfString', unbounded('string', 's:string')),
  ],
  JobManagementWs: [
    complexType('ArrayOfSubmittedJobInfoExt', unbounded('SubmittedJobInfoExt', 'tns:SubmittedJobInfoExt')),
    complexType(
      'SubmittedJobInfoExt',
      nillable('id', 's:long'),
      optional('name', 's:string'),
      nillable('state', 's:string'),
      nillable('priority', 's:string'),
      optional('project', 's:string'),
      ...['creationTime', 'submitTime', 'startTime', 'endTime'].map((name) => nillable(name, 's:dateTime')),
      nillable('totalAllocatedTime', 's:double'),
      optional('allParameters', 's:string'),
      optional('nodeType', 's:anyType'),
      optional('tasks', 'tns:ArrayOfSubmittedTaskInfoExt'),
    ),
    complexType('ArrayOfSubmittedTaskInfoExt', unbounded('SubmittedTaskInfoExt', 'tns:SubmittedTaskInfoExt')),
    complexType(
      'SubmittedTaskInfoExt',
      nillable('id', 's:long'),
      optional('name', 's:string'),
      nillable('state', 's:string'),
      nillable('allocatedTime', 's:double'),
      optional('allocatedCoreIds', 's:string'),
      ...['startTime', 'endTime'].map((name) => nillable(name, 's:dateTime')),
      optional('errorMessage', 's:string'),
      optional('allParameters', 's:string'),
    ),
  ],
};

const message = (operation: Operation) =>
  `<wsdl:message name="${operation}SoapIn"><wsdl:part name="parameters" element="tns:${operation}"/></wsdl:message>
<wsdl:message name="${operation}SoapOut"><wsdl:part name="parameters" element="tns:${operation}Response"/></wsdl:message>`;

const portOperation = (operation: Operation) =>
  `<wsdl:operation name="${operation}"><wsdl:input message="tns:${operation}SoapIn"/><wsdl:output message="tns:${operation}SoapOut"/></wsdl:operation>`;

function binding(prefix: 'soap' | 'soap12', service: ServiceName, namespace: string): string {
  const operations = SERVICES[service].map(
    (operation) => `<wsdl:operation name="${operation}">
<${prefix}:operation soapAction="${escapeXml(actionOf(namespace, operation))}" style="document"/>
<wsdl:input><${prefix}:body use="literal"/></wsdl:input><wsdl:output><${prefix}:body use="literal"/></wsdl:output>
</wsdl:operation>`,
  );
  return `<wsdl:binding name="${portOf(prefix, service)}" type="tns:${service}Soap">
<${prefix}:binding transport="http://schemas.xmlsoap.org/soap/http"/>
${operations.join('\n')}
</wsdl:binding>`;
}

const portOf = (prefix: 'soap' | 'soap12', service: ServiceName) =>
  `${service}${prefix === 'soap' ? 'Soap' : 'Soap12'}`;

/** The WSDL of a service: both ports on the same address (docs/dev/soap.md 4.1). */
export function wsdlOf({ namespace, url, service = 'FileTransferWs' }: ContractOptions): string {
  const tns = escapeXml(namespace);
  const operations = SERVICES[service];
  const port = (prefix: 'soap' | 'soap12') => {
    const name = portOf(prefix, service);
    return `<wsdl:port name="${name}" binding="tns:${name}"><${prefix}:address location="${escapeXml(url)}"/></wsdl:port>`;
  };
  return `<?xml version="1.0" encoding="utf-8"?>
<wsdl:definitions xmlns:soap="http://schemas.xmlsoap.org/wsdl/soap/" xmlns:soap12="http://schemas.xmlsoap.org/wsdl/soap12/" xmlns:s="http://www.w3.org/2001/XMLSchema" xmlns:wsdl="http://schemas.xmlsoap.org/wsdl/" xmlns:tns="${tns}" targetNamespace="${tns}">
<wsdl:types><s:schema elementFormDefault="qualified" targetNamespace="${tns}">
${[...operations.map(wrappers), ...TYPES[service]].join('\n')}
</s:schema></wsdl:types>
${operations.map(message).join('\n')}
<wsdl:portType name="${service}Soap">
${operations.map(portOperation).join('\n')}
</wsdl:portType>
${binding('soap', service, namespace)}
${binding('soap12', service, namespace)}
<wsdl:service name="${service}">
${port('soap')}
${port('soap12')}
</wsdl:service>
</wsdl:definitions>
`;
}
