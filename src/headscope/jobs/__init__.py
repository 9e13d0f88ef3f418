"""What each command does, one public function a file; they own output folders, resuming and manifests."""
