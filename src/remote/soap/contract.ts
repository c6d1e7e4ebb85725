/** The names of FileTransferWs and JobManagementWs (docs/dev/soap.md 2, 4.1 and 10). */
import type { LiveFileName } from '../../job.ts';
import { FILE_TRANSFER_OPERATIONS, JOB_OPERATIONS, type Operation } from '../../operations.ts';

export const SOAP_NAMESPACES = {
  '1.1': 'http://schemas.xmlsoap.org/soap/envelope/',
  '1.2': 'http://www.w3.org/2003/05/soap-envelope',
} as const;
export type SoapVersion = keyof typeof SOAP_NAMESPACES;

export const SERVICES = { FileTransferWs: FILE_TRANSFER_OPERATIONS, JobManagementWs: JOB_OPERATIONS } as const;
export type ServiceName = keyof typeof SERVICES;

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
