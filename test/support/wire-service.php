<?php
// The file-transfer service on PHP's own SoapServer, from the WSDL of the product: shares no code with it.
// Environment: WIRE_WSDL (path), WIRE_SESSION (the valid session code), WIRE_DATA (path of a JSON file with base64).

class FileTransferWs
{
    private array $data;

    public function __construct()
    {
        $this->data = json_decode(file_get_contents(getenv('WIRE_DATA')), true);
    }

    private function check(object $request): void
    {
        $code = $request->sessionCode ?? null;
        if ($code !== getenv('WIRE_SESSION')) {
            throw new SoapFault('Server', "Session code $code is not valid & <refused>");
        }
        if ($request->submittedJobInfoId !== 9223372036854775807) {
            throw new SoapFault('Server', 'There is no such job');
        }
    }

    public function GetFileTransferMethod(object $request): array
    {
        $this->check($request);
        return ['GetFileTransferMethodResult' => $this->data['method']];
    }

    public function EndFileTransfer(object $request): array
    {
        $this->check($request);
        $ended = $request->usedTransferMethod->credentials->publicKey ?? null;
        if ($ended !== $this->data['method']['credentials']['publicKey']) {
            throw new SoapFault('Server', 'There is no such transfer: ' . json_encode($ended));
        }
        return [];
    }

    public function DownloadPartsOfJobFilesFromCluster(object $request): array
    {
        $this->check($request);
        $asked = $request->taskFileOffsets->TaskFileOffsetExt ?? [];
        $entries = [];
        foreach (array_reverse(is_array($asked) ? $asked : [$asked]) as $one) {
            $content = $this->data['live']["{$one->submittedTaskInfoId}/{$one->fileType}"] ?? null;
            if ($content === null) {
                continue;
            }
            $entries[] = [
                'content' => substr(base64_decode($content), $one->offset),
                'relativePath' => '/out',
                'offset' => $one->offset,
                'fileType' => $one->fileType,
                'submittedTaskInfoId' => $one->submittedTaskInfoId,
            ];
        }
        return ['DownloadPartsOfJobFilesFromClusterResult' => ['JobFileContentExt' => $entries]];
    }

    public function ListChangedFilesForJob(object $request): array
    {
        $this->check($request);
        return ['ListChangedFilesForJobResult' => ['string' => array_keys($this->data['files'])]];
    }

    public function DownloadFileFromCluster(object $request): array
    {
        $this->check($request);
        $file = $this->data['files'][$request->relativeFilePath] ?? null;
        return $file === null ? [] : ['DownloadFileFromClusterResult' => base64_decode($file)];
    }
}

$server = new SoapServer(getenv('WIRE_WSDL'), ['cache_wsdl' => WSDL_CACHE_NONE]);
$server->setObject(new FileTransferWs());
$server->handle();
