/** The operations of the service by the names of docs/dev/soap.md 4.1 and 10.1, whatever protocol they are called by. */

export const FILE_TRANSFER_OPERATIONS = [
  'GetFileTransferMethod',
  'EndFileTransfer',
  'DownloadPartsOfJobFilesFromCluster',
  'ListChangedFilesForJob',
  'DownloadFileFromCluster',
] as const;
export const JOB_OPERATIONS = ['GetCurrentInfoForJob', 'ListJobsForCurrentUser'] as const;

export type FileTransferOperation = (typeof FILE_TRANSFER_OPERATIONS)[number];
type JobOperation = (typeof JOB_OPERATIONS)[number];
export type Operation = FileTransferOperation | JobOperation;

/** Whether a request may be sent twice: each transfer method uses up one of the few keys of its job. */
export const isIdempotent = (operation: Operation): boolean => operation !== 'GetFileTransferMethod';
